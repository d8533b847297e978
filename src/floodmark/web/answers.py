"""What the JSON of `serve` holds: the types that /openapi.json describes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from floodmark.connectors.behind import Lag
from floodmark.fleet.card import FleetCard
from floodmark.fleet.detail import CheckpointDetail
from floodmark.fleet.retention import Overtaking
from floodmark.web.history import BatchSample, Sample
from floodmark.web.watched import RootStatus


@dataclass(frozen=True)
class FleetAnswer:
    revision: int
    """Give it as `since` to get only what changed after it."""
    now_ms: int
    began_ms: int
    """Another value than before: the server was started again, so revisions begin anew."""
    interval_ms: int
    asks_lag: bool
    roots: list[RootStatus]
    cards: list[FleetCard]
    gone: list[str]


@dataclass(frozen=True)
class CheckpointAnswer:
    now_ms: int
    card: FleetCard
    detail: CheckpointDetail
    lag: Lag | None
    """As `floodmark lag --json` gives it; None: the sources were not asked, or see the problem."""
    lag_problem: str | None
    overtaking: Overtaking | None


@dataclass(frozen=True)
class HistoryAnswer:
    samples: list[Sample]
    batches: list[BatchSample]


@dataclass(frozen=True)
class PageDifference:
    where: str
    left: Any
    right: Any


@dataclass(frozen=True)
class DifferencesAnswer:
    left: str
    right: str
    differences: list[PageDifference]
    left_out: int


@dataclass(frozen=True)
class PlanAnswer:
    verb: str
    command: str
    lines: list[str]
    """The plan in words. Nothing is carried out here."""


@dataclass(frozen=True)
class Problem:
    detail: str


@dataclass(frozen=True)
class Up:
    checkpoints: int
    revision: int
    fault: str | None
    """What went wrong in the watching itself, if something has."""
