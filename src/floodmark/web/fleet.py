"""Follows every checkpoint below the roots: looks again at each interval, and keeps cards.

All work with storage or brokers runs in the root's worker threads. So storage that hangs only makes
the cards of its root grey. The thread that keeps time never waits.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace

from floodmark.connectors.behind import Lag
from floodmark.errors import FloodmarkError, NotThere
from floodmark.fleet.alerts import Alert, changes, troubles
from floodmark.fleet.card import FleetCard, bounded, superseded
from floodmark.fleet.pulse import StreamHealth, span
from floodmark.fleet.retention import overtaking
from floodmark.fleet.stream_lag import card_lag, part_samples
from floodmark.secret_text import redacted
from floodmark.storage.files import Files
from floodmark.storage.glimpse import glimpse
from floodmark.storage.listing.scan import find_checkpoints
from floodmark.web.checkpoint_page import newest_progress
from floodmark.web.examine import examine
from floodmark.web.history import PARTS_KEPT_MS, History
from floodmark.web.keeping import SAMPLE_MS, Keeper
from floodmark.web.notify import Notifier
from floodmark.web.one_checkpoint import (
    RootStatus,
    Watched,
    WatchedRoot,
    WatchOptions,
    card_fields,
    id_of,
    new_card,
)

_LAG_SHARE = 0.03
_DISCOVER_SHARE = 0.01
_EXAMINE_AGAIN_SECONDS = 60.0
_EXAMINE_SHARE = 0.005
_LONGEST_PROBLEM = 500
AskLag = Callable[[str], Lag]
"""Returns the lag for a checkpoint's path; raises FloodmarkError where it is unknown."""


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
        """A fault of the watching itself, if there is one."""
        self._ask_lag = ask_lag
        self._notifier = notifier
        self._roots = [WatchedRoot(files, options, self._failed) for files in roots]
        self._watched: dict[str, Watched] = {}
        self._gone: deque[tuple[int, str]] = deque(maxlen=10_000)
        self._revision = 1
        self._lock = threading.RLock()
        self._stop = threading.Event()
        self._keeper = Keeper(history)
        self._examine_unchanged_every = options.examine_every
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
        """Return the cards that changed after a revision, the gone ones, and the revision now."""
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
            RootStatus(
                root.files.root,
                counts.get(id(root), 0),
                self._root_problem(root),
                len(root.passed_over),
                root.passed_over[0] if root.passed_over else None,
            )
            for root in self._roots
        ]

    def _root_problem(self, root: WatchedRoot) -> str | None:
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
                self._failed(error)
            self._stop.wait(max(self.options.interval - (time.monotonic() - began), 0.05))

    def _failed(self, error: Exception) -> None:
        self.fault = _words_of(error)

    def tick(self) -> None:
        """Start all due work, and judge every card by the present time."""
        now = time.monotonic()
        for root in self._roots:
            root.workers.replace_stuck()
            root.askers.replace_stuck()
            due = now - root.looked >= self._discover_every(root) or not root.looked
            if due and root.looking_since is None:
                root.looking_since = now
                root.workers.add(lambda root=root: self._discover(root))  # type: ignore[misc]
        lag_every = self._lag_every()
        self._examine_unchanged_every = self._unchanged_every()
        for one in list(self._watched.values()):
            if not one.queued:
                one.queued = True
                one.root.workers.add(lambda one=one: self._look(one))  # type: ignore[misc]
            if self._is_due(one):
                one.examining = True
                one.root.workers.add(lambda one=one: self._examine(one))  # type: ignore[misc]
            asked = one.lag_asked and now - one.lag_asked < lag_every
            if self._ask_lag and one.glimpse and not one.glimpse.dstreams and not asked:
                one.lag_asked = now
                one.root.askers.add(lambda one=one: self._ask(one))  # type: ignore[misc]
        self._judge_all()
        self._keeper.keep(self._watched.values())

    def _discover_every(self, root: WatchedRoot) -> float:
        """Return how often to look for new checkpoints: soon, but at a low cost."""
        options = self.options
        least = options.discover_every
        if root.files.reads_cost:
            least = options.discover_every_where_it_costs
        return max(least, root.looking_cost / _DISCOVER_SHARE)

    def _discover(self, root: WatchedRoot) -> None:
        """Watch each checkpoint as soon as it is found, as a large root takes a while."""
        began = time.thread_time()
        found: dict[str, str] = {}
        passed_over: list[str] = []
        try:
            level = root.files.level()
            if not level.folders and not level.files:
                root.files.list(most=1)  # this reports a wrong root, if it is not only empty
            for files in find_checkpoints(
                root.files, lambda path, what: passed_over.append(bounded(f"{path}: {what}"))
            ):
                id_ = id_of(files)
                found[id_] = files.root
                self._watch(id_, files, root)
            problem = None
        except Exception as error:  # only this root becomes grey, not the page
            problem = _words_of(error)
        root.looking_cost = time.thread_time() - began
        with self._lock:
            root.problem, root.looking_since, root.looked = problem, None, time.monotonic()
            root.passed_over, root.known = passed_over, True
            left_behind = superseded(found.values())
            for id_ in found:
                if id_ in self._watched:
                    self._watched[id_].superseded = found[id_] in left_behind
            if problem is None:
                for id_ in [i for i, one in self._watched.items() if one.root is root]:
                    if id_ not in found:
                        self._forget(id_)

    def _watch(self, id_: str, files: Files, root: WatchedRoot) -> None:
        with self._lock:
            if id_ not in self._watched:
                self._revision += 1
                card = new_card(id_, files, root, self._revision)
                self._watched[id_] = Watched(id_, files, root, card)

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
        """Read what changed of one checkpoint; an error makes the card grey and is not raised."""
        try:
            seen = glimpse(one.files, one.glimpse)
            if seen is not one.glimpse:
                one.progress = newest_progress(one.files)
            one.glimpse, one.problem = seen, None
        except Exception as error:
            one.problem = _words_of(error)
            if isinstance(error, NotThere):
                one.root.looked = 0.0  # it vanished while it was shown: the next tick looks again
        one.checked = time.monotonic()

    def _is_due(self, one: Watched) -> bool:
        """Whether to examine the whole checkpoint: first when it is seen, then now and then."""
        if one.examining or one.glimpse is None or one.problem is not None:
            return False
        if not one.examined_at:
            return True
        waited = time.monotonic() - one.examined_at
        if one.examine_problem is not None:
            return waited >= _EXAMINE_AGAIN_SECONDS
        if one.examined_batch != one.glimpse.newest:
            return waited >= self.options.examine_every
        return waited >= self._examine_unchanged_every

    def _examine(self, one: Watched) -> None:
        """Examine a checkpoint in a job of its own, as a large one takes long."""
        latest = one.glimpse.newest if one.glimpse else None
        began = time.thread_time()
        try:
            one.examined, one.examine_problem = examine(one.files), None
        except Exception as error:
            one.examine_problem = _words_of(error)
        finally:
            one.examined_at, one.examined_batch = time.monotonic(), latest
            one.examine_cost = time.thread_time() - began
            one.examining = False

    def _ask(self, one: Watched) -> None:
        assert self._ask_lag is not None
        began = time.thread_time()
        try:
            one.lag, one.lag_problem = self._ask_lag(one.files.root), None
        except Exception as error:
            one.lag, one.lag_problem = None, _words_of(error)
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
        if lag.time_ms - one.parts_ms >= SAMPLE_MS:
            one.parts_ms = lag.time_ms
            self.history.add_parts(one.id, parts)

    def _lag_every(self) -> float:
        """Return how often to ask for lag, so that asking takes a small share of one processor."""
        cost = sum(one.lag_cost for one in self.watched())
        return max(self.options.lag_every, cost / _LAG_SHARE)

    def _unchanged_every(self) -> float:
        """Return how often to examine an unchanged checkpoint: seldom, but files may vanish."""
        cost = sum(one.examine_cost for one in self.watched())
        return max(self.options.examine_every, cost / _EXAMINE_SHARE)

    def _judge_all(self) -> None:
        now_ms, now = int(time.time() * 1000), time.monotonic()
        for one in list(self._watched.values()):
            self._judge(one, now_ms, now)

    def _judge(self, one: Watched, now_ms: int, now: float) -> None:
        fields = card_fields(one, self.options, now_ms, now)
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

    def _alert(self, one: Watched, now_ms: int) -> None:
        if one.card.health is StreamHealth.UNKNOWN or not one.root.known:
            return
        found = troubles(one.card, tuple(one.lags))
        if self._notifier is not None:
            for event, words in changes(one.troubles, found):
                card = one.card
                self._notifier.post(Alert(event, card.id, card.name, card.path, words, now_ms))
        one.troubles = found


def _words_of(error: Exception) -> str:
    """Return what went wrong; a driver's own complaint comes with its name, and may be long."""
    if isinstance(error, FloodmarkError):
        return bounded(error.what, _LONGEST_PROBLEM)
    return bounded(redacted(f"{type(error).__name__}: {error}"), _LONGEST_PROBLEM)
