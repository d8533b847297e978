"""Defines the JSON answers of `serve`: the types that /openapi.json describes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from floodmark.connectors.behind import Lag
from floodmark.fleet.card import FleetCard
from floodmark.fleet.detail import CheckpointDetail
from floodmark.fleet.retention import Overtaking
from floodmark.web.history import BatchSample, Sample
from floodmark.web.one_checkpoint import RootStatus


@dataclass(frozen=True)
class FleetAnswer:
    revision: int
    """Give this number as `since` to get only what changed after it."""
    now_ms: int
    began_ms: int
    """A new value means that the server was restarted, so revisions begin again."""
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
    """The lag as in `floodmark lag --json`; None: nobody asked the sources, or see the problem."""
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
    """The plan in words. Nothing is executed here."""


@dataclass(frozen=True)
class Problem:
    detail: str


@dataclass(frozen=True)
class Up:
    checkpoints: int
    revision: int
    fault: str | None
    """A fault of the watching itself, if there is one."""
