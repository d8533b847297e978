"""Summarises one checkpoint of a fleet, for a row of the fleet page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from floodmark.checkpoint.places.flow import flow_place
from floodmark.fleet.pulse import Pulse, StreamHealth

_LONGEST = 300


@dataclass(frozen=True)
class CardLag:
    """The lag of all sources together; None where a source does not report it."""

    records: int | None = None
    bytes: int | None = None
    ms: int | None = None
    retention_ms: int | None = None
    """The time until the source removes unread records, at the recent speed."""
    problem: str | None = None
    """A sentence that says why the lag is unknown."""
    bytes_estimated: bool = False


@dataclass(frozen=True)
class FindingCounts:
    error: int = 0
    warning: int = 0
    advice: int = 0
    first: str | None = None
    """The words of the worst finding."""


@dataclass(frozen=True)
class CardDStreams:
    """The summary of a DStreams folder; its `last_commit_ms` is when it was last saved."""

    batch_ms: int | None
    pending: int | None
    """The number of batches that were planned and not finished."""


@dataclass(frozen=True)
class FleetCard:
    id: str
    path: str
    name: str
    root: str
    group: str | None
    """The declarative pipeline, if the checkpoint belongs to a flow."""
    health: StreamHealth
    words: str
    kind: str | None = None
    query_id: str | None = None
    sources: tuple[str, ...] = ()
    """The kinds of its sources."""
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
    """None: the checkpoint was not examined yet."""
    steps_ms: tuple[int, ...] = ()
    """The last times between commits, oldest first, for a small plot."""
    dstreams: CardDStreams | None = None
    superseded: bool = False
    """True where a later checkpoint of its flow is in use."""
    problem: str | None = None
    """The reason why the card is grey."""
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
    """Return the declarative pipeline, by its storage folder; None for an ordinary checkpoint."""
    place = flow_place(path)
    if place is None:
        return None
    storage = place.storage
    below = storage[len(root) :].strip("/") if storage.startswith(root) else storage
    return bounded(below or storage.rpartition("/")[2] or "pipeline")


def name_of(path: str, root: str) -> str:
    """Return a name within the root: a flow's table, or else the path below the root."""
    place = flow_place(path)
    if place is not None:
        table = place.table.rpartition(".")[2]
        flow = table if table == place.flow else f"{table} · {place.flow}"
        return bounded(f"{flow}/{place.number}")
    below = path[len(root) :].strip("/") if path.startswith(root) else path
    return bounded(below or path.rstrip("/").rpartition("/")[2] or path)


def superseded(paths: Iterable[str]) -> frozenset[str]:
    """Return the checkpoints of flows that a full refresh has left behind."""
    places = {path: place for path in paths if (place := flow_place(path)) is not None}
    newest: dict[str, int] = {}
    for place in places.values():
        newest[place.folder] = max(place.number, newest.get(place.folder, 0))
    return frozenset(path for path, place in places.items() if place.number < newest[place.folder])


def bounded(text: str, longest: int = _LONGEST) -> str:
    """Shorten a stranger's text to what a page can show."""
    return text if len(text) <= longest else f"{text[:longest]}… ({len(text):,} characters)"
