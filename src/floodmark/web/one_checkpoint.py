"""Holds what is known of one watched checkpoint, and makes its card."""

from __future__ import annotations

import hashlib
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from floodmark.connectors.behind import Lag
from floodmark.fleet.card import CardLag, FleetCard, bounded, group_of, name_of, pulse_fields
from floodmark.fleet.progress_lines import ProgressLine
from floodmark.fleet.pulse import StreamHealth, pulse
from floodmark.fleet.retention import Overtaking
from floodmark.fleet.stream_lag import card_lag
from floodmark.storage.files import Files
from floodmark.storage.glimpse import Glimpse
from floodmark.web.examine import Examined
from floodmark.web.workers import Workers

_WORKERS_LOCAL, _WORKERS_REMOTE = 2, 8
_STEPS_SHOWN = 30
_LAGS_KEPT = 8
_LONGEST_PATH = 2000
_SUPERSEDED = "A later checkpoint of this flow is in use: its pipeline was refreshed in full."


@dataclass(frozen=True)
class WatchOptions:
    interval: float = 5.0
    examine_every: float = 300.0
    discover_every: float = 10.0
    discover_every_where_it_costs: float = 60.0
    lag_every: float = 20.0
    patience: float = 20.0
    """The number of seconds without an answer after which a card is grey."""


@dataclass(frozen=True)
class RootStatus:
    path: str
    checkpoints: int
    problem: str | None
    passed_over: int
    """The number of links and odd names below it, which are not followed."""
    passed_over_first: str | None
    """The first of them, and its kind."""


class WatchedRoot:
    """A root with threads of its own, so that storage that hangs delays no other root."""

    def __init__(
        self, files: Files, options: WatchOptions, failed: Callable[[Exception], None]
    ) -> None:
        self.files = files
        self.problem: str | None = None
        self.looked = 0.0
        self.looking_since: float | None = None
        self.passed_over: list[str] = []
        self.known = False
        """Whether the root was searched once: only then are superseded flows known."""
        self.looking_cost = 0.0
        """Seconds of processor time that the last search for checkpoints took."""
        count = _WORKERS_REMOTE if files.reads_cost else _WORKERS_LOCAL
        self.workers = Workers("look", count, options.patience, failed)
        self.askers = Workers("ask", 2, options.patience, failed)
        self.pool = ThreadPoolExecutor(4, "floodmark-page")
        """Workers for a page's questions about one checkpoint."""


@dataclass(eq=False)
class Watched:
    """One checkpoint, and what is known of it now."""

    id: str
    files: Files
    root: WatchedRoot
    card: FleetCard
    glimpse: Glimpse | None = None
    progress: ProgressLine | None = None
    """The newest progress line, if a run keeps them."""
    examined: Examined | None = None
    examined_at: float = 0.0
    examined_batch: int | None = None
    lag: Lag | None = None
    lag_problem: str | None = None
    lag_asked: float = 0.0
    lag_cost: float = 0.0
    """Seconds of processor time that the last question took."""
    lags: deque[int] = field(default_factory=lambda: deque(maxlen=_LAGS_KEPT))
    checked: float = field(default_factory=time.monotonic)
    queued: bool = False
    problem: str | None = None
    troubles: dict[str, str] = field(default_factory=dict)
    sampled_ms: int = 0
    kept_batch: int | None = None
    parts_ms: int = 0
    """The time when its partitions' positions went into the history."""
    overtaken: Overtaking | None = None
    """The time when retention overtakes the stream, by the sources' last answer."""
    superseded: bool = False
    examining: bool = False
    examine_cost: float = 0.0
    """Seconds of processor time that the last examination took."""
    examine_problem: str | None = None
    """The reason why it cannot be examined, although its logs can be followed."""


def card_fields(one: Watched, options: WatchOptions, now_ms: int, now: float) -> dict[str, Any]:
    """Return the content of its card at this time."""
    silent = now - one.checked
    checked_ms = now_ms - int(silent * 1000)
    problem = one.problem or one.examine_problem
    if silent > options.patience + options.interval:
        problem = "The storage has not answered in time."
    found, examined = one.glimpse, one.examined
    if problem is not None or found is None:
        health = StreamHealth.UNKNOWN
        words = problem or "Not read yet."
        return {
            "health": health,
            "words": words,
            "problem": problem,
            "checked_ms": checked_ms,
        }
    lag = card_lag(one.lag, one.overtaken) if one.lag else CardLag(problem=one.lag_problem)
    times = _times(found, examined)
    beat = pulse(
        times,
        now_ms,
        found.planned_ms if found.in_flight is not None else None,
        lag.records,
        steady=found.dstreams,
    )
    fields: dict[str, Any] = {
        **pulse_fields(beat),
        "problem": None,
        "superseded": one.superseded,
        "checked_ms": checked_ms,
        "latest_batch": found.latest,
        "committed_batch": found.committed,
        "in_flight_batch": found.in_flight,
        "watermark_ms": found.watermark_ms or None,
        "lag": lag,
        "steps_ms": tuple(after - before for before, after in pairwise(times[-_STEPS_SHOWN - 1 :])),
    }
    if one.superseded:
        fields |= {"health": StreamHealth.IDLE, "words": _SUPERSEDED}
    if examined is not None:
        fields |= {
            "kind": examined.kind,
            "query_id": examined.query_id,
            "sources": examined.sources,
            "state_bytes": examined.state_bytes,
            "bytes": examined.bytes,
            "files": examined.files,
            "findings": examined.findings,
            "dstreams": examined.dstreams,
        }
    return fields


def _times(found: Glimpse, examined: Examined | None) -> tuple[int, ...]:
    if examined and examined.batch_times is not None and examined.committed == found.committed:
        return examined.batch_times
    return tuple(at for _, at in found.commit_times)


def id_of(files: Files) -> str:
    """Return an id that replaces the checkpoint's path in addresses."""
    return hashlib.blake2b(files.root.encode(errors="replace"), digest_size=8).hexdigest()


def new_card(id_: str, files: Files, root: WatchedRoot, revision: int) -> FleetCard:
    path, below = files.root, root.files.root
    return FleetCard(
        id_,
        bounded(path, _LONGEST_PATH),
        name_of(path, below),
        below,
        group_of(path, below),
        StreamHealth.UNKNOWN,
        "Not read yet.",
        revision=revision,
    )
