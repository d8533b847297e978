"""Commits a run's offsets to a Kafka consumer group, for other tools to see.

A broker forgets the offsets of a group without members, so this commits them again in time. The
stream never reads this copy: a problem with it is reported once, and the stream goes on.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from floodmark.connectors.kafka.consumer_group import (
    Groups,
    check_name,
    commit_to_group,
    furthest_behind,
    refuse_others,
)
from floodmark.connectors.kafka.offset import SERVERS, is_kafka_form
from floodmark.connectors.lag import next_positions
from floodmark.connectors.registry import kind_named
from floodmark.engine.run.listeners import Listener
from floodmark.engine.run.progress import BatchProgress
from floodmark.engine.spark.kafka_admin import Broker
from floodmark.errors import FloodmarkError, Refused

if TYPE_CHECKING:
    from floodmark.connectors.kafka.admin import Place
    from floodmark.engine.run.live_table import View
    from floodmark.engine.start.query_to_start import QueryToStart

NAME_OF_PIPELINE = "{pipeline}"
_AT_MOST_EVERY_SECONDS = 5.0
_AT_LEAST_EVERY_SECONDS = 600.0
"""Kafka keeps such offsets for seven days, unless offsets.retention.minutes says otherwise."""
_ENDED = ("finished", "stopped", "failed")

Connect = Callable[[Mapping[str, str]], Groups]


class _Kept:
    """One pipeline's group at one cluster."""

    def __init__(self, group: str, sources: Mapping[int, Mapping[str, str]], view: View) -> None:
        self.group = group
        self.sources = sources
        """The query's Kafka sources by number, with their options."""
        self.view = view
        self.newest: tuple[str, dict[str, dict[Place, int]]] | None = None
        """The query's id, and by brokers the offsets at which its last batch ended."""
        self.done: object = None
        self.tried = float("-inf")
        self.told: set[str] = set()

    @property
    def by_servers(self) -> dict[str, Mapping[str, str]]:
        return {options[SERVERS]: options for options in self.sources.values()}


class GroupListener(Listener):
    def __init__(
        self,
        name: str,
        connect: Callable[[QueryToStart], Connect] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._name = name
        self._connect = connect or _by_spark
        self._clock = clock
        self._kept: dict[str, _Kept] = {}
        self._clients: dict[str, Connect] = {}
        self._lock = threading.Lock()
        self._working = threading.Lock()
        self._thread: threading.Thread | None = None
        self._wake = threading.Event()

    def begins(self, pipeline: str, starting: QueryToStart, view: View, restarts: int) -> None:
        group = check_name(self._name.replace(NAME_OF_PIPELINE, pipeline))
        known = {
            (number, known_as): source.options
            for number, (known_as, source) in enumerate(starting.sources)
            if kind_named(source.kind).has_topics and source.options.get(SERVERS)
        }
        if not known:
            view.say(pipeline, f"nothing is committed to group {group}: no source is Kafka")
            return
        kept = _Kept(group, {number: options for (number, _), options in known.items()}, view)
        checkpoint = starting.saved.checkpoint
        if checkpoint is not None and checkpoint.query_id is not None:
            stands = {one.id: one.offset for one in next_positions(checkpoint)}
            ends = {number: stands.get(known_as) for number, known_as in known}
            kept.newest = (checkpoint.query_id, _by_brokers(kept.sources, ends))
        with self._lock:
            others = [one for name, one in self._kept.items() if name != pipeline]
            if any(one.group == group for one in others):
                raise Refused(
                    f"--commit-to-group {self._name}: two queries would commit to one group",
                    "Each would overwrite the other's offsets.",
                    f"Put the pipeline's name into it: --commit-to-group {self._name}-"
                    f"{NAME_OF_PIPELINE}",
                )
            self._kept[pipeline] = kept
            self._clients[pipeline] = self._connect(starting)
        self._refuse(pipeline, kept)
        self._wake_up()

    def _refuse(self, pipeline: str, kept: _Kept) -> None:
        """Refuse somebody else's group before the query starts, if the brokers answer."""
        query_id, by_brokers = kept.newest or (None, {})
        for servers, options in kept.by_servers.items():
            try:
                groups = self._clients[pipeline](options)
                refuse_others(groups, kept.group, by_brokers.get(servers, {}), query_id)
            except Refused:
                with self._lock:
                    del self._kept[pipeline]
                raise
            except FloodmarkError as error:
                kept.view.say(pipeline, f"group {kept.group} was not looked at: {error.what}")

    def batch(self, batch: BatchProgress) -> None:
        with self._lock:
            kept = self._kept.get(batch.pipeline)
            if kept is None:
                return
            ends = {number: source.end for number, source in enumerate(batch.sources)}
            kept.newest = (batch.query_id, _by_brokers(kept.sources, ends))
        self._wake_up()

    def state(self, pipeline: str, words: str) -> None:
        if words in _ENDED and pipeline in self._kept:
            self.commit_due(pipeline, at_once=True)
            with self._lock:
                self._kept.pop(pipeline, None)
            self._wake.set()

    def _wake_up(self) -> None:
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._work, name="floodmark-group", daemon=True
                )
                self._thread.start()
        self._wake.set()

    def _work(self) -> None:
        while True:
            self._wake.wait(_AT_MOST_EVERY_SECONDS)
            self._wake.clear()
            with self._lock:
                pipelines = list(self._kept)
                if not pipelines:
                    self._thread = None
                    return
            for pipeline in pipelines:
                self.commit_due(pipeline)

    def commit_due(self, pipeline: str, at_once: bool = False) -> None:
        """Commit offsets that are new, or that were committed long ago."""
        with self._working:
            with self._lock:
                kept = self._kept.get(pipeline)
                if kept is None or kept.newest is None:
                    return
                newest, since = kept.newest, self._clock() - kept.tried
                changed = newest != kept.done
                due = since >= (_AT_MOST_EVERY_SECONDS if changed else _AT_LEAST_EVERY_SECONDS)
                if not (due or (at_once and changed)):
                    return
                kept.tried = self._clock()
            try:
                self._commit(pipeline, kept, *newest)
            except Exception as error:
                # Whatever a client or a dying JVM raises: only the copy is late, not the stream.
                words = error.what if isinstance(error, FloodmarkError) else type(error).__name__
                if words not in kept.told:
                    kept.told.add(words)
                    kept.view.say(pipeline, f"group {kept.group} was not written: {words}")
            else:
                kept.done = newest

    def _commit(
        self,
        pipeline: str,
        kept: _Kept,
        query_id: str,
        by_brokers: Mapping[str, Mapping[Place, int]],
    ) -> None:
        for servers, offsets in by_brokers.items():
            groups = self._clients[pipeline](kept.by_servers[servers])
            commit_to_group(groups, kept.group, offsets, query_id, 0)


def _by_brokers(
    sources: Mapping[int, Mapping[str, str]], ends: Mapping[int, Any]
) -> dict[str, dict[Place, int]]:
    """Return the offsets for each cluster's group; `ends` has each source's offset."""
    by_servers: dict[str, list[Any]] = {}
    for number, options in sources.items():
        if is_kafka_form(ends.get(number)):
            by_servers.setdefault(options[SERVERS], []).append(ends[number])
    return {servers: furthest_behind(offsets) for servers, offsets in by_servers.items()}


def _by_spark(starting: QueryToStart) -> Connect:
    """Connect with Spark's own client, and with the source's own options."""
    known: dict[str, Groups] = {}

    def connect(options: Mapping[str, str]) -> Groups:
        servers = options[SERVERS]
        if servers not in known:
            known[servers] = Broker.connect(starting.spark, options)
        return known[servers]

    return connect
