"""Holds what the doctor judges by: a checkpoint, and facts of files that the model leaves out.

Storage gathers it and the rules read it; neither knows the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

from floodmark.checkpoint.conf_keys import PROVIDER_CLASS, STATE_CODEC
from floodmark.checkpoint.derived_entries import derived_commit
from floodmark.checkpoint.layout import (
    COMMITS,
    NOTES,
    OFFSETS,
    FileInfo,
    StateFile,
    batch_id,
    is_temporary,
)
from floodmark.checkpoint.live_answers import LiveAnswers
from floodmark.checkpoint.model import Checkpoint
from floodmark.checkpoint.restart import is_sparse_by_design
from floodmark.checkpoint.state_chain import StateIndex, Steps, StoreChain, next_batch
from floodmark.connectors.source import SourceOffset
from floodmark.errors import MalformedFile

_Answer = TypeVar("_Answer")
_Place = TypeVar("_Place")
_NOTHING: Mapping[Any, Any] = MappingProxyType({})
_HOLE_SHOWN = 100
_WRITTEN_WITHIN_MS = 3_600_000
_PROVIDERS = {"HDFSBackedStateStoreProvider": "hdfs", "RocksDBStateStoreProvider": "rocksdb"}


@dataclass(frozen=True)
class Fault:
    """The reason why a file cannot be understood."""

    reason: str
    newer: bool = False
    """Whether the file names a format version that this release does not know."""
    empty: bool = False


class NotedStart(NamedTuple):
    """One start of a query here, as floodmark noted it."""

    path: str
    query_id: str
    run_id: str
    note: Mapping[str, Any] = _NOTHING
    """The whole note of the start."""


@dataclass(frozen=True)
class Evidence:
    checkpoint: Checkpoint
    """The checkpoint, with every batch that is still logged."""
    places: tuple[str, ...] = ()
    """The checkpoint's own location, in each spelling that Spark may have used."""
    now_ms: int = 0
    faults: Mapping[str, Fault] = field(default_factory=lambda: _NOTHING)
    """Files that were read and do not parse."""
    positions: Mapping[int, tuple[SourceOffset, ...]] = field(default_factory=lambda: _NOTHING)
    """The position of each source after each batch, as far as it can be understood."""
    snapshots: Mapping[str, tuple[FileInfo, ...]] = field(default_factory=lambda: _NOTHING)
    """Zip → the SSTs and logs it names."""
    disagreeing: frozenset[str] = frozenset()
    """Files whose hidden `.crc` side file does not match their bytes."""
    cures: Mapping[str, bytes] = field(default_factory=lambda: _NOTHING)
    """File in `disagreeing` → its original bytes, if the side file shows which bit flipped."""
    altered: frozenset[str] = frozenset()
    """Files in `disagreeing` whose side file is sound: Spark did not write these bytes."""
    checksums: Mapping[str, str] = field(default_factory=lambda: _NOTHING)
    """State file → how it disagrees with Spark's own checksum."""
    schemas: frozenset[str] = frozenset()
    """State schema files that were read and are sound."""
    seen_files: Mapping[str, int] = field(default_factory=lambda: _NOTHING)
    """File source → the newest entry of its log."""
    read_data: bool = False
    """Whether state files were read in full."""
    strays: Mapping[str, str] = field(default_factory=lambda: _NOTHING)
    """State file or folder of a RocksDB store → how its keys belong to another partition."""
    outside: LiveAnswers | None = None
    """The answers of the sources and the sink; None if they were not asked."""
    starts: tuple[NotedStart, ...] = ()
    """The starts that floodmark has noted, oldest first."""
    codecs: frozenset[str] = frozenset()
    """The codecs of the state files that the next start reads, by their first bytes. They are
    looked at only if the entries disagree about the codec."""
    lineages: Mapping[str, Steps] = field(default_factory=lambda: _NOTHING)
    """Changelog → the versions that it continues, if the commits do not name them all."""
    keyed: frozenset[int] = frozenset()
    """Operators whose state schema has keys: these have a partition for each task."""
    own_unreadable: Mapping[str, str] = field(default_factory=lambda: _NOTHING)
    """Floodmark's own files that make every change refuse, because they cannot be read → why."""

    @cached_property
    def sizes(self) -> Mapping[str, int]:
        """The sizes of the checkpoint's own files, without the files that floodmark keeps."""
        return {
            file.path: file.size
            for file in self.checkpoint.files
            if not file.path.startswith(f"{NOTES}/")
        }

    @property
    def left_open(self) -> str:
        """What the doctor did not look at, in words."""
        checkpoint = self.checkpoint
        if checkpoint.dstreams is not None:
            unread = checkpoint.dstreams.rdds and not self.read_data
            return "Saved RDDs were not opened; --read-data opens them." if unread else ""
        if checkpoint.state_files or checkpoint.committed_batch is None:
            unread = not self.read_data
            return "State files were not opened; --read-data opens them." if unread else ""
        if self.starts or checkpoint.state_operators or not checkpoint.complete:
            return ""
        return (
            "There is no state folder. That is right only for a query without state; any other "
            "query fails (Spark 4.2: STREAMING_STATEFUL_OPERATOR_MISSING_STATE_DIRECTORY)."
        )

    @cached_property
    def mtimes(self) -> Mapping[str, int | None]:
        return {file.path: file.mtime_ms for file in self.checkpoint.files}

    @cached_property
    def needs(self) -> tuple[StoreChain, ...]:
        return self.state.chains(self.next_batch or 0)

    @cached_property
    def state(self) -> StateIndex:
        return StateIndex(self.checkpoint, (), self.keyed, self._lineage)

    def _lineage(self, changelog: StateFile) -> Steps | None:
        return self.lineages.get(changelog.path)

    @cached_property
    def needed(self) -> frozenset[str]:
        """The state files that the next start reads."""
        return frozenset(file.path for need in self.needs for file in need.files)

    @property
    def next_batch(self) -> int | None:
        return next_batch(self.checkpoint)

    @property
    def begins_after(self) -> int | None:
        """The batch after which the next one begins; None if the next one is the first."""
        batch = self.next_batch
        return None if not batch else batch - 1

    @property
    def asked_sources(self) -> Iterator[tuple[str, SourceOffset, LiveAnswers]]:
        """For each source: the log entry, the position where the next batch begins, the answers.

        Empty if the real sources were not asked, or if the next batch is the first.
        """
        batch = self.begins_after
        if self.outside is not None and batch is not None:
            for source in self.positions.get(batch, ()):
                yield f"{OFFSETS}/{batch}", source, self.outside

    def answered(
        self,
        answers: Callable[[LiveAnswers], Mapping[str, _Answer]],
        parse: Callable[[Any], _Place],
    ) -> Iterator[tuple[str, str, _Place, _Answer]]:
        """Yield (log entry, source, parsed position, answer) of the sources with such an answer.

        Another rule reports a position that cannot be parsed.
        """
        for entry, source, outside in self.asked_sources:
            answer = answers(outside).get(source.id)
            if answer is None or source.offset is None:
                continue
            with suppress(MalformedFile):
                yield entry, source.id, parse(source.offset), answer

    @cached_property
    def deciding(self) -> frozenset[str]:
        """The entries that Spark opens at a start: the newest two offset entries, the newest
        commit.
        """
        latest, committed = self.checkpoint.latest_batch, self.checkpoint.committed_batch
        found = set()
        if latest is not None:
            found |= {f"{OFFSETS}/{latest}", f"{OFFSETS}/{latest - 1}"}
        if committed is not None:
            found.add(f"{COMMITS}/{committed}")
        return frozenset(found)

    @cached_property
    def holes(self) -> tuple[int, ...]:
        """Batches between the oldest and the newest that have no offset entry."""
        planned = self.checkpoint.offset_ids
        return tuple(
            batch
            for before, after in pairwise(planned)
            # A stray file with a huge number must not be counted up to.
            for batch in range(max(before + 1, after - _HOLE_SHOWN), after)
        )

    @property
    def snapshot_tables(self) -> Iterator[tuple[str, FileInfo, bool]]:
        """(snapshot, a table that it names, whether the next start reads the snapshot)."""
        for snapshot, tables in self.snapshots.items():
            for table in tables:
                yield snapshot, table, snapshot in self.needed

    @cached_property
    def sparse_by_design(self) -> bool:
        return is_sparse_by_design(self.checkpoint)

    @cached_property
    def unusable(self) -> frozenset[str]:
        """State files that cannot be loaded, as far as they were looked at."""
        empty = {file.path for file in self.checkpoint.state_files if file.size == 0}
        hollow = {
            snapshot
            for snapshot, tables in self.snapshots.items()
            if any(
                self.sizes.get(table.path) != table.size or table.path in self.altered
                for table in tables
            )
        }
        state = {file.path for file in self.checkpoint.state_files}
        # People edit logs by hand, but never state: what is not as Spark wrote it is damaged.
        wrong = self.faults.keys() | self.checksums.keys() | self.strays.keys() | self.altered
        return frozenset((state & wrong) | empty | hollow)

    def is_whole(self, version: int) -> bool:
        """Whether every store can be rebuilt to a version, also from an older snapshot."""
        return not any(need.missing for need in self._sound_state.chains(version))

    @cached_property
    def _sound_state(self) -> StateIndex:
        return StateIndex(self.checkpoint, self.unusable, self.keyed, self._lineage)

    @cached_property
    def last_whole_batch(self) -> int | None:
        """The newest committed batch whose entries and state are all there."""
        checkpoint = self.checkpoint
        for batch in reversed(checkpoint.commit_ids):
            known = batch in checkpoint.offsets and batch in checkpoint.commits
            if known and f"{OFFSETS}/{batch}" not in self.faults and self.is_whole(batch + 1):
                return batch
        return None

    @cached_property
    def state_is_to_be_had(self) -> bool:
        """Whether the state can be rebuilt from an older snapshot or by going back to a whole
        batch.
        """
        return self.is_whole(self.next_batch or 0) or self.way_back is not None

    @cached_property
    def way_back(self) -> int | None:
        """The batch after which the stream can go on; -1 if its very first batch must be
        planned.
        """
        checkpoint = self.checkpoint
        if not checkpoint.commit_ids and checkpoint.offset_ids == (0,):
            return -1
        return self.last_whole_batch

    def can_mend_entry(self, path: str) -> bool:
        """Whether a torn log entry can be derived from its neighbours, or dropped by going back."""
        entry = log_entry(path)
        if entry is None:
            return False
        log, batch = entry
        checkpoint = self.checkpoint
        if log == OFFSETS:
            return path in self.deciding and self.way_back is not None
        newest = batch == checkpoint.latest_batch == checkpoint.committed_batch
        return newest or derived_commit(checkpoint, batch) is not None

    def written_with(self, key: str) -> str | None:
        """Return the value of a setting that the state files themselves prove.

        None if no log entry has that value, or if the files prove none.
        """
        entries = self.checkpoint.offsets.values()
        said = {entry.metadata.conf.get(key, "") for entry in entries if entry.metadata}
        if key == STATE_CODEC:
            found, meant = set(self.codecs), {value: value for value in said}
        elif key == PROVIDER_CLASS:
            found = {file.provider for need in self.needs for file in need.files}
            meant = {value: _PROVIDERS.get(value.rpartition(".")[2], "") for value in said}
        else:
            return None
        proven = [value for value in said if found == {meant[value]}]
        return proven[0] if len(proven) == 1 else None

    @cached_property
    def rate_starts(self) -> Mapping[str, int]:
        """Rate source → the latest moment, in ms, at which it can have begun.

        An offset is the number of seconds since that moment. Spark asks for it right before the
        time of the entry.
        """
        found: dict[str, int] = {}
        for batch, sources in self.positions.items():
            entry = self.checkpoint.offsets.get(batch)
            for source in sources:
                if entry is None or entry.metadata is None or type(source.offset) is not int:
                    continue
                at = entry.metadata.batch_timestamp_ms - 1000 * source.offset
                found[source.id] = min(at, found.get(source.id, at))
        return found

    @cached_property
    def temporary(self) -> tuple[FileInfo, ...]:
        return tuple(
            file
            for file in self.checkpoint.files
            if is_temporary(file.path.rsplit("/", 1)[-1]) and file.path in self.sizes
        )

    @cached_property
    def leftovers(self) -> tuple[FileInfo, ...]:
        """Temporary files that nobody writes any more. A running query always has some of its
        own.
        """
        checkpoint = self.checkpoint
        entries = [
            self.mtimes.get(path) or 0
            for path in (
                f"{OFFSETS}/{checkpoint.latest_batch}",
                f"{COMMITS}/{checkpoint.committed_batch}",
            )
        ]
        before = max([*entries, self.now_ms - _WRITTEN_WITHIN_MS])
        return tuple(file for file in self.temporary if (file.mtime_ms or 0) < before)


def log_entry(path: str) -> tuple[str, int] | None:
    """Return (`offsets` or `commits`, batch) for a log entry's path."""
    folder, _, name = path.partition("/")
    batch = batch_id(name) if folder in (OFFSETS, COMMITS) and name else None
    return None if batch is None else (folder, batch)
