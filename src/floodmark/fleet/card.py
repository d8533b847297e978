"""One checkpoint of a fleet in short: what a row of the fleet page shows."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from floodmark.fleet.pulse import Pulse, StreamHealth

# `<storage>/_checkpoints/<catalog>/<schema>/<table>/<flow>/<n>`, as spark-pipelines lays it out.
_FLOW = re.compile(r"(?P<base>.*?)/?_checkpoints/(?P<table>[^/]+(?:/[^/]+)*)/(?P<flow>[^/]+)/\d+")
_LONGEST = 300


@dataclass(frozen=True)
class CardLag:
    """How far behind all sources together are; None where one of them does not tell."""

    records: int | None = None
    bytes: int | None = None
    ms: int | None = None
    retention_ms: int | None = None
    """Until the source removes what this stream has not read yet, at the speed of late."""
    problem: str | None = None
    """Why the lag is not known, in words."""


@dataclass(frozen=True)
class FindingCounts:
    error: int = 0
    warning: int = 0
    advice: int = 0
    first: str | None = None
    """The worst one's words."""


@dataclass(frozen=True)
class FleetCard:
    id: str
    path: str
    name: str
    root: str
    group: str | None
    """The declarative pipeline that it is a flow of."""
    health: StreamHealth
    words: str
    kind: str | None = None
    query_id: str | None = None
    sources: tuple[str, ...] = ()
    """Kinds of its sources."""
    latest_batch: int | None = None
    committed_batch: int | None = None
    in_flight_batch: int | None = None
    last_commit_ms: int | None = None
    usual_ms: int | None = None
    batches_per_minute: float | None = None
    watermark_ms: int | None = None
    lag: CardLag = field(default_factory=CardLag)
    state_bytes: int | None = None
    bytes: int | None = None
    files: int | None = None
    findings: FindingCounts | None = None
    """None: not examined yet."""
    steps_ms: tuple[int, ...] = ()
    """The last times between commits, oldest first, for a small plot."""
    problem: str | None = None
    """Why it is grey."""
    checked_ms: int = 0
    revision: int = 0


def pulse_fields(pulse: Pulse) -> Mapping[str, object]:
    return {
        "health": pulse.health,
        "words": pulse.words,
        "last_commit_ms": pulse.last_commit_ms,
        "usual_ms": pulse.usual_ms,
        "batches_per_minute": pulse.batches_per_minute,
    }


def group_of(path: str, root: str) -> str | None:
    """The declarative pipeline, by its storage folder; None for an ordinary checkpoint."""
    found = _FLOW.fullmatch(path.rstrip("/"))
    if found is None:
        return None
    base = found["base"]
    below = base[len(root) :].strip("/") if base.startswith(root) else base
    return bounded(below or base.rpartition("/")[2] or "pipeline")


def name_of(path: str, root: str) -> str:
    """What tells it from the others below the root: a flow by its table, else the path below."""
    found = _FLOW.fullmatch(path.rstrip("/"))
    if found is not None:
        table = found["table"].split("/")[-1]
        return bounded(table if table == found["flow"] else f"{table} · {found['flow']}")
    below = path[len(root) :].strip("/") if path.startswith(root) else path
    return bounded(below or path.rstrip("/").rpartition("/")[2] or path)


def bounded(text: str, longest: int = _LONGEST) -> str:
    """A stranger's text, as long as a page can show."""
    return text if len(text) <= longest else f"{text[:longest]}… ({len(text):,} characters)"
