"""Follows every checkpoint below the roots: looks again at each interval, and keeps cards.

Whatever touches storage or a broker runs in worker threads of its root, so storage that hangs
makes the cards of that root grey and nothing else. The thread that keeps time never waits.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from floodmark.connectors.behind import Lag
from floodmark.errors import FloodmarkError, NotThere
from floodmark.fleet.alerts import Alert, changes, troubles
from floodmark.fleet.card import CardLag, FleetCard, bounded, group_of, name_of, pulse_fields
from floodmark.fleet.pulse import StreamHealth, pulse, span
from floodmark.fleet.retention import Overtaking, overtaking
from floodmark.fleet.stream_lag import card_lag, part_samples
from floodmark.secret_text import redacted
from floodmark.storage.files import Files
from floodmark.storage.glimpse import Glimpse, glimpse
from floodmark.storage.scan import find_checkpoints
from floodmark.web.examine import Examined, examine
from floodmark.web.history import PARTS_KEPT_MS, BatchSample, History, Sample
from floodmark.web.notify import Notifier
from floodmark.web.workers import Workers

_WORKERS_LOCAL, _WORKERS_REMOTE = 2, 8
_SAMPLE_MS = 60_000
_PRUNE_SECONDS = 3600
_STEPS_SHOWN = 30
_LAGS_KEPT = 8
_LAG_SHARE = 0.03
_LONGEST_PATH = 2000
AskLag = Callable[[str], Lag]
"""A checkpoint's path → how far behind it is. Raises FloodmarkError where that is not known."""


@dataclass(frozen=True)
class WatchOptions:
    interval: float = 5.0
    examine_every: float = 300.0
    discover_every: float = 60.0
    lag_every: float = 20.0
    patience: float = 20.0
    """After so many seconds without an answer a card is grey."""


@dataclass(frozen=True)
class RootStatus:
    path: str
    checkpoints: int
    problem: str | None


class _Root:
    def __init__(self, files: Files, options: WatchOptions) -> None:
        self.files = files
        self.problem: str | None = None
        self.looked = 0.0
        self.looking_since: float | None = None
        count = _WORKERS_REMOTE if files.reads_cost else _WORKERS_LOCAL
        self.workers = Workers("look", count, options.patience)
        self.askers = Workers("ask", 2, options.patience)
        self.pool = ThreadPoolExecutor(4, "floodmark-page")
        """For what a page asks of one checkpoint."""


@dataclass(eq=False)
class Watched:
    """One checkpoint and what is known of it now."""

    id: str
    files: Files
    root: _Root
    card: FleetCard
    glimpse: Glimpse | None = None
    examined: Examined | None = None
    examined_at: float = 0.0
    examined_batch: int | None = None
    lag: Lag | None = None
    lag_problem: str | None = None
    lag_asked: float = 0.0
    lag_cost: float = 0.0
    """Seconds of processor that the last question took."""
    lags: deque[int] = field(default_factory=lambda: deque(maxlen=_LAGS_KEPT))
    checked: float = field(default_factory=time.monotonic)
    queued: bool = False
    problem: str | None = None
    troubles: dict[str, str] = field(default_factory=dict)
    sampled_ms: int = 0
    kept_batch: int | None = None
    parts_ms: int = 0
    """When its partitions' positions went into the history."""
    overtaken: Overtaking | None = None
    """When retention overtakes the stream, by the last answer of the sources."""
    examining: bool = False
    examine_problem: str | None = None
    """Why it cannot be examined, though its logs can be followed."""


class Fleet:
    def __init__(
        self,
        roots: Sequence[Files],
        options: WatchOptions,
        history: History,
        notifier: Notifier | None = None,
        ask_lag: AskLag | None = None,
    ) -> None:
        self.options = options
        self.history = history
        self.began = int(time.time() * 1000)
        self.asks_lag = ask_lag is not None
        self.fault: str | None = None
        """What went wrong in the watching itself, if something has."""
        self._ask_lag = ask_lag
        self._notifier = notifier
        self._roots = [_Root(files, options) for files in roots]
        self._watched: dict[str, Watched] = {}
        self._gone: deque[tuple[int, str]] = deque(maxlen=10_000)
        self._revision = 1
        self._lock = threading.RLock()
        self._stop = threading.Event()
        self._pruned = 0.0
        self._thread = threading.Thread(target=self._run, name="floodmark-watch", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        self._stop.set()
        self._thread.join(2)
        for root in self._roots:
            root.workers.close()
            root.askers.close()
            root.pool.shutdown(wait=False, cancel_futures=True)
        if self._notifier:
            self._notifier.close()
        self.history.close()

    @property
    def revision(self) -> int:
        return self._revision

    def find(self, id_: str) -> Watched | None:
        return self._watched.get(id_)

    def watched(self) -> list[Watched]:
        with self._lock:
            return list(self._watched.values())

    def cards(self, since: int = 0) -> tuple[list[FleetCard], list[str], int]:
        """Those that changed after a revision, those that are gone, and the revision now."""
        with self._lock:
            every = [one.card for one in self._watched.values()]
            gone = [id_ for at, id_ in self._gone if at > since]
            revision = self._revision
        return [card for card in every if card.revision > since], gone, revision

    def roots(self) -> list[RootStatus]:
        with self._lock:
            counts: dict[int, int] = {}
            for one in self._watched.values():
                counts[id(one.root)] = counts.get(id(one.root), 0) + 1
        return [
            RootStatus(root.files.root, counts.get(id(root), 0), self._root_problem(root))
            for root in self._roots
        ]

    def _root_problem(self, root: _Root) -> str | None:
        since = root.looking_since
        if since is not None and time.monotonic() - since > self.options.patience:
            return f"The storage has not answered for {span((time.monotonic() - since) * 1000)}."
        return root.problem

    def _run(self) -> None:
        while not self._stop.is_set():
            began = time.monotonic()
            try:
                self.tick()
            except Exception as error:  # the clock must not stop: the next tick tries again
                self.fault = redacted(f"{type(error).__name__}: {error}")
            self._stop.wait(max(self.options.interval - (time.monotonic() - began), 0.05))

    def tick(self) -> None:
        """Gives out what is due, and judges every card by the time that it is."""
        now = time.monotonic()
        for root in self._roots:
            root.workers.replace_stuck()
            root.askers.replace_stuck()
            due = now - root.looked >= self.options.discover_every or not root.looked
            if due and root.looking_since is None:
                root.looking_since = now
                root.workers.add(lambda root=root: self._discover(root))  # type: ignore[misc]
        lag_every = self._lag_every()
        for one in list(self._watched.values()):
            if not one.queued:
                one.queued = True
                one.root.workers.add(lambda one=one: self._look(one))  # type: ignore[misc]
            if self._is_due(one):
                one.examining = True
                one.root.workers.add(lambda one=one: self._examine(one))  # type: ignore[misc]
            asked = one.lag_asked and now - one.lag_asked < lag_every
            if self._ask_lag and one.glimpse and not asked:
                one.lag_asked = now
                one.root.askers.add(lambda one=one: self._ask(one))  # type: ignore[misc]
        self._judge_all()
        self._keep()

    def _discover(self, root: _Root) -> None:
        try:
            level = root.files.level()
            if not level.folders and not level.files:
                root.files.list(most=1)  # says what is wrong, if it is not just empty
            found = {_id_of(files): files for files in find_checkpoints(root.files)}
            problem = None
        except FloodmarkError as error:
            found, problem = {}, error.what
        except Exception as error:  # a driver's own complaint: this root is grey, not the page
            found, problem = {}, redacted(f"{type(error).__name__}: {error}")
        with self._lock:
            root.problem, root.looking_since, root.looked = problem, None, time.monotonic()
            for id_, files in found.items():
                if id_ not in self._watched:
                    self._revision += 1
                    card = _new_card(id_, files, root, self._revision)
                    self._watched[id_] = Watched(id_, files, root, card)
            if problem is None:
                for id_ in [i for i, one in self._watched.items() if one.root is root]:
                    if id_ not in found:
                        self._forget(id_)

    def _forget(self, id_: str) -> None:
        self._watched.pop(id_, None)
        self._revision += 1
        self._gone.append((self._revision, id_))

    def _look(self, one: Watched) -> None:
        try:
            self.refresh(one)
        finally:
            one.queued = False

    def refresh(self, one: Watched) -> None:
        """Reads what changed of one checkpoint. Raises nothing: what fails makes the card grey."""
        try:
            one.glimpse = glimpse(one.files, one.glimpse)
            one.problem = None
        except NotThere as error:
            one.problem = error.what
            one.root.looked = 0.0  # it vanished while it was shown: the next tick looks again
        except FloodmarkError as error:
            one.problem = error.what
        except Exception as error:  # a driver's own complaint
            one.problem = redacted(f"{type(error).__name__}: {error}")
        one.checked = time.monotonic()

    def _is_due(self, one: Watched) -> bool:
        """Whether to examine it as a whole: when it is first seen, then now and then."""
        if one.examining or one.glimpse is None or one.problem is not None:
            return False
        if not one.examined_at:
            return True
        waited = time.monotonic() - one.examined_at
        if one.examine_problem is not None:
            return waited >= self.options.discover_every
        return waited >= self.options.examine_every and one.examined_batch != one.glimpse.latest

    def _examine(self, one: Watched) -> None:
        """Takes long for a large checkpoint, so that it is a job of its own."""
        latest = one.glimpse.latest if one.glimpse else None
        try:
            one.examined, one.examine_problem = examine(one.files), None
        except FloodmarkError as error:
            one.examine_problem = error.what
        except Exception as error:  # a driver's own complaint
            one.examine_problem = redacted(f"{type(error).__name__}: {error}")
        finally:
            one.examined_at, one.examined_batch = time.monotonic(), latest
            one.examining = False

    def _ask(self, one: Watched) -> None:
        assert self._ask_lag is not None
        began = time.thread_time()
        try:
            one.lag, one.lag_problem = self._ask_lag(one.files.root), None
        except FloodmarkError as error:
            one.lag, one.lag_problem = None, error.what
        except Exception as error:  # a client's own complaint
            one.lag, one.lag_problem = None, redacted(f"{type(error).__name__}: {error}")
        one.lag_cost = time.thread_time() - began
        if one.lag is None:
            return
        records = card_lag(one.lag).records
        if records is not None:
            one.lags.append(records)
        self._watch_retention(one, one.lag)

    def _watch_retention(self, one: Watched, lag: Lag) -> None:
        parts = part_samples(lag)
        if not parts:
            return
        before = self.history.first_parts(one.id, lag.time_ms - PARTS_KEPT_MS)
        one.overtaken = overtaking([*before, *parts])
        if lag.time_ms - one.parts_ms >= _SAMPLE_MS:
            one.parts_ms = lag.time_ms
            self.history.add_parts(one.id, parts)

    def _lag_every(self) -> float:
        """So seldom that asking takes a small share of one processor."""
        cost = sum(one.lag_cost for one in self._watched.values())
        return max(self.options.lag_every, cost / _LAG_SHARE)

    def _judge_all(self) -> None:
        now_ms, now = int(time.time() * 1000), time.monotonic()
        for one in list(self._watched.values()):
            self._judge(one, now_ms, now)

    def _judge(self, one: Watched, now_ms: int, now: float) -> None:
        fields = self._fields(one, now_ms, now)
        before = one.card
        words, checked = fields.pop("words"), fields.pop("checked_ms")
        if any(getattr(before, name) != value for name, value in fields.items()):
            with self._lock:
                self._revision += 1
                revision = self._revision
            one.card = replace(before, **fields, words=words, checked_ms=checked, revision=revision)
        else:
            one.card = replace(before, words=words, checked_ms=checked)
        self._alert(one, now_ms)

    def _fields(self, one: Watched, now_ms: int, now: float) -> dict[str, Any]:
        silent = now - one.checked
        checked_ms = now_ms - int(silent * 1000)
        problem = one.problem or one.examine_problem
        if silent > self.options.patience + self.options.interval:
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
            times, now_ms, found.planned_ms if found.in_flight is not None else None, lag.records
        )
        fields: dict[str, Any] = {
            **pulse_fields(beat),
            "problem": None,
            "checked_ms": checked_ms,
            "latest_batch": found.latest,
            "committed_batch": found.committed,
            "in_flight_batch": found.in_flight,
            "watermark_ms": found.watermark_ms or None,
            "lag": lag,
            "steps_ms": tuple(
                after - before for before, after in pairwise(times[-_STEPS_SHOWN - 1 :])
            ),
        }
        if examined is not None:
            fields |= {
                "kind": examined.kind,
                "query_id": examined.query_id,
                "sources": examined.sources,
                "state_bytes": examined.state_bytes,
                "bytes": examined.bytes,
                "files": examined.files,
                "findings": examined.findings,
            }
        return fields

    def _alert(self, one: Watched, now_ms: int) -> None:
        if one.card.health is StreamHealth.UNKNOWN:
            return
        found = troubles(one.card, tuple(one.lags))
        if self._notifier is not None:
            for event, words in changes(one.troubles, found):
                card = one.card
                self._notifier.post(Alert(event, card.id, card.name, card.path, words, now_ms))
        one.troubles = found

    def _keep(self) -> None:
        """Into the history: a sample a minute of what changed, and every batch that was seen."""
        now_ms = int(time.time() * 1000)
        samples, batches = [], []
        for one in list(self._watched.values()):
            card, found = one.card, one.glimpse
            if found is None or card.health is StreamHealth.UNKNOWN:
                continue
            moved = card.committed_batch != one.kept_batch
            if now_ms - one.sampled_ms >= _SAMPLE_MS and (moved or one.lag or not one.sampled_ms):
                one.sampled_ms = now_ms
                samples.append((one.id, _sample(card, now_ms)))
            if moved:
                before = -1 if one.kept_batch is None else one.kept_batch
                batches += [
                    (one.id, BatchSample(batch, at))
                    for batch, at in one_a_minute(found.commit_times)
                    if batch > before
                ]
                one.kept_batch = card.committed_batch
        self.history.add(samples)
        self.history.add_batches(batches)
        if time.monotonic() - self._pruned > _PRUNE_SECONDS:
            self._pruned = time.monotonic()
            self.history.prune(now_ms)


def one_a_minute(times: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Of the batches of one minute the first: a stream may have very many."""
    first: dict[int, tuple[int, int]] = {}
    for batch, at in times:
        first.setdefault(at // _SAMPLE_MS, (batch, at))
    return list(first.values())


def _times(found: Glimpse, examined: Examined | None) -> tuple[int, ...]:
    if examined and examined.batch_times is not None and examined.committed == found.committed:
        return examined.batch_times
    return tuple(at for _, at in found.commit_times)


def _sample(card: FleetCard, now_ms: int) -> Sample:
    return Sample(
        now_ms,
        card.committed_batch,
        card.lag.records,
        card.lag.bytes,
        card.lag.ms,
        card.state_bytes,
        card.watermark_ms,
    )


def _id_of(files: Files) -> str:
    """Names a checkpoint in addresses, in place of its path."""
    return hashlib.blake2b(files.root.encode(errors="replace"), digest_size=8).hexdigest()


def _new_card(id_: str, files: Files, root: _Root, revision: int) -> FleetCard:
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
