"""A checkpoint as one frozen value: what was listed, what was read, what could not be read.

Only the entries that a caller asks for are read. `offset_ids` and `commit_ids` list all that exist.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from floodmark.checkpoint.commits import CommitEntry
from floodmark.checkpoint.conf_keys import PROVIDER_CLASS
from floodmark.checkpoint.layout import (
    COMMITS,
    METADATA,
    OFFSETS,
    SOURCES,
    STATE,
    FileInfo,
    StateFile,
    batch_id,
    source_ids,
    state_files,
)
from floodmark.checkpoint.metadata import OperatorMetadata, QueryMetadata
from floodmark.checkpoint.offsets import OffsetEntry
from floodmark.checkpoint.state_chain import oldest_versions, partition_count, store_names
from floodmark.connectors.registry import can_be, kinds, look_alikes, read_source_offset
from floodmark.connectors.source import UNKNOWN, SourceOffset
from floodmark.errors import CannotRead, MalformedFile

if TYPE_CHECKING:  # a class of its own for each thing that is found: slow to load
    from floodmark.checkpoint.dstreams.folder import DStreamsCheckpoint

_NOTHING: Mapping[Any, Any] = MappingProxyType({})
_OF_SPARK = frozenset({METADATA, OFFSETS, COMMITS, SOURCES, STATE})


class Kind(str, Enum):
    STRUCTURED_STREAMING = "structured-streaming"
    DSTREAMS = "dstreams"


@dataclass(frozen=True)
class Unreadable:
    path: str
    """The file, relative to the checkpoint."""
    reason: str
    """Why it cannot be read."""


@dataclass(frozen=True)
class StateOperator:
    """One stateful operator, as its folder and its own metadata show it."""

    operator: int
    """Its number in the plan, and the name of its folder in state/."""
    name: str | None
    """Its name in Spark 4.0 and later; earlier versions wrote no name."""
    provider: str
    """The provider that wrote the state: `hdfs` or `rocksdb`."""
    partitions: int
    """The number of partitions of its state."""
    stores: tuple[str, ...]
    """The names of its stores: `default`, or several for the sides of a join."""
    version: int | None
    """The newest state version; batch N leaves version N + 1."""
    bytes: int
    """The total size of its files."""


@dataclass(frozen=True)
class Checkpoint:
    """What a checkpoint's files say."""

    path: str
    """The folder or URL."""
    kind: Kind
    """The API that wrote it."""
    files: tuple[FileInfo, ...]
    """Every file, with size and time."""
    complete: bool = True
    """False if the listing of a very large checkpoint was stopped early."""
    metadata: QueryMetadata | None = None
    """The query's id, as `metadata` has it."""
    offset_ids: tuple[int, ...] = ()
    """The batches in offsets/, oldest first."""
    commit_ids: tuple[int, ...] = ()
    """The batches in commits/, oldest first."""
    offsets: Mapping[int, OffsetEntry] = field(default_factory=lambda: _NOTHING)
    """Batch → its entry of the offset log, of those that were read."""
    commits: Mapping[int, CommitEntry] = field(default_factory=lambda: _NOTHING)
    """Batch → its entry of the commit log, of those that were read."""
    operators: Mapping[int, OperatorMetadata] = field(default_factory=lambda: _NOTHING)
    """Operator → what its metadata says."""
    initial: Mapping[str, bytes] = field(default_factory=lambda: _NOTHING)
    """`sources/<id>/0` of the sources whose offset alone does not show their kind."""
    unreadable: tuple[Unreadable, ...] = ()
    """Files that cannot be read, and why."""
    not_given: frozenset[str] = frozenset()
    """The paths in `unreadable` that storage did not give; a second try may succeed."""
    keyed: frozenset[int] = frozenset()
    """Operators whose schema has keys and that have files only in partition 0: the other
    partitions are lost."""
    said_kinds: Mapping[str, str] = field(default_factory=lambda: _NOTHING)
    """Source that looks like another kind → its kind by the user, the last note or the code."""
    disputed: Mapping[str, str] = field(default_factory=lambda: _NOTHING)
    """Source → why its kind is not known: its offset contradicts the note of the last start."""
    dstreams: DStreamsCheckpoint | None = None
    """The content of a DStreams folder, which has no log of batches."""
    operator_folders: frozenset[int] = frozenset()
    """Operators that are known by their state folders, if not all files were listed."""
    not_read: tuple[str, ...] = ()
    """Files with more details that were not read, so that the requests stay few."""

    def __repr__(self) -> str:
        from floodmark.screen import fields_text  # no command shows it

        return fields_text(self)

    @property
    def query_id(self) -> str | None:
        """The id by which sinks know the query."""
        return self.metadata.id if self.metadata else None

    @property
    def latest_batch(self) -> int | None:
        """The newest batch in offsets/: planned, and maybe not committed."""
        return self.offset_ids[-1] if self.offset_ids else None

    @property
    def committed_batch(self) -> int | None:
        """The newest batch in commits/."""
        return self.commit_ids[-1] if self.commit_ids else None

    @property
    def in_flight_batch(self) -> int | None:
        """The batch that is planned and not committed: Spark runs it again."""
        latest, committed = self.latest_batch, self.committed_batch
        if latest is None or (committed is not None and committed >= latest):
            return None
        return latest

    @property
    def latest_entry(self) -> OffsetEntry | None:
        """The newest entry of the offset log."""
        return None if self.latest_batch is None else self.offsets.get(self.latest_batch)

    @property
    def latest_commit(self) -> CommitEntry | None:
        """The newest entry of the commit log."""
        return None if self.committed_batch is None else self.commits.get(self.committed_batch)

    def refuse_broken_offsets(self, batch: int, do: str) -> None:
        """Raises where the batch's entry of the offset log is there and cannot be read."""
        for broken in self.unreadable:
            if broken.path == f"{OFFSETS}/{batch}":
                raise MalformedFile(f"{self.path}/{broken.path} cannot be read", broken.reason, do)

    def refuse_not_given(self) -> None:
        """Raises where storage did not give a file: unlike damage, its content is unknown."""
        for item in self.unreadable:
            if item.path in self.not_given:
                raise CannotRead(
                    f"{self.path}/{item.path}: storage did not give this file",
                    item.reason,
                    "Repeat the command. If storage has lost the file for good, remove it; then "
                    "`floodmark repair CP` says what can be done.",
                )

    @cached_property
    def unexamined(self) -> tuple[Unreadable, ...]:
        """Places that Spark reads and floodmark does not: links, pipes, closed folders."""
        listed = {file.path for file in self.files}
        return tuple(
            item
            for item in self.unreadable
            if (item.path not in listed or item.path in self.not_given)
            and item.path.partition("/")[0] in _OF_SPARK
        )

    def refuse_unexamined(self, operator: int) -> None:
        """Raise if files of an operator's state lie behind a link, or may not be read."""
        for item in self.unexamined:
            if f"{item.path}/".startswith(f"{STATE}/{operator}/") or item.path == STATE:
                raise CannotRead(
                    f"{self.path}/{item.path} was not examined: {item.reason}",
                    "A part of the state lies there, so an answer would not be whole.",
                    "Put the file or folder itself in its place, or make it readable.",
                )

    @property
    def watermark_ms(self) -> int | None:
        """The watermark that the next batch starts with."""
        entry = self.latest_entry
        planned = entry.metadata.batch_watermark_ms if entry and entry.metadata else None
        if self.in_flight_batch is not None:
            return planned
        commit = self.latest_commit
        committed = commit.next_batch_watermark_ms if commit else None
        known = [value for value in (planned, committed) if value is not None]
        return max(known, default=None)

    @property
    def batch_time_ms(self) -> int | None:
        """When the latest batch was planned."""
        entry = self.latest_entry
        return entry.metadata.batch_timestamp_ms if entry and entry.metadata else None

    @property
    def offset_log_version(self) -> int | None:
        """1, or 2 where sources have names."""
        return self.latest_entry.version if self.latest_entry else None

    @property
    def commit_log_version(self) -> int | None:
        """1, 2 with unique ids of state, 3 with names of sinks."""
        return self.latest_commit.version if self.latest_commit else None

    @property
    def conf(self) -> Mapping[str, str]:
        """The settings that the checkpoint pins: they override the session at restart."""
        entry = self.latest_entry
        return entry.metadata.conf if entry and entry.metadata else _NOTHING

    @property
    def restart_pins(self) -> Mapping[str, str] | None:
        """The pinned settings, even if there are none; None where the session alone decides.

        That is so without a planned batch, and in the log of Spark 2.0, which has no metadata.
        """
        entry = self.latest_entry
        return entry.metadata.conf if entry and entry.metadata else None

    @property
    def could_be(self) -> dict[str, tuple[str, ...]]:
        """Source → other kinds whose offsets look the same, if nobody has said its kind."""
        unsaid = (one for one in self.sources if one.id not in self.said_kinds)
        found = {one.id: self._look_alikes(one) for one in unsaid if one.offset is not None}
        return {source: others for source, others in found.items() if others}

    def _look_alikes(self, source: SourceOffset) -> tuple[str, ...]:
        if source.id in self.disputed:
            return tuple(one.name for one in kinds() if source.kind in one.looks_like)
        return look_alikes(source.kind)

    @property
    def sources(self) -> tuple[SourceOffset, ...]:
        """The position of each source at the end of the latest batch."""
        return () if self.latest_batch is None else self.sources_of(self.latest_batch)

    def sources_of(self, batch: int) -> tuple[SourceOffset, ...]:
        """Return where each source stands at the end of a batch."""
        entry = self.offsets.get(batch)
        if entry is None:
            return ()
        return tuple(self.understood(source, text) for source, text in entry.offsets)

    def twin_of(self, source: str) -> str | None:
        """Return the source that may keep the files of this one too, or None.

        If a query reads one stream twice, as in a self-join, the stream has two places in the
        offsets, always with the same offset. Only the first place has a folder.
        """
        kept = source_ids(self.files)
        entries = [dict(entry.offsets) for entry in self.offsets.values()]
        if source in kept or not entries:
            return None
        return next(
            (
                other
                for other in kept
                if all(other in entry and entry[other] == entry.get(source) for entry in entries)
            ),
            None,
        )

    def understood(self, source: str, text: str | None) -> SourceOffset:
        """Return an offset of a source, with all that is known of its kind."""
        try:
            found = read_source_offset(source, text, self.initial.get(source))
            said = self.said_kinds.get(source)
            if said is not None and not can_be(said, found.offset):
                return found  # an earlier entry: another source had this place then
            kind = said or self._kind_in_other_batches(source, found.kind)
            return found if kind == found.kind else replace(found, kind=kind)
        except MalformedFile:
            # Loading says so of the entries it checks; one of thousands must not hide the rest.
            return SourceOffset(source, UNKNOWN, text, text)

    def _kind_in_other_batches(self, source: str, kind: str) -> str:
        """Return the kind that earlier batches prove.

        Event Hubs' -1 tells it from Kafka, and is gone once a partition has an event.
        """
        told = self._below_zero.get(source)
        return told if told is not None and told in look_alikes(kind) else kind

    @cached_property
    def _below_zero(self) -> Mapping[str, str]:
        """Source → its kind, proven by a batch that has a negative number."""
        return {
            source: read_source_offset(source, text, self.initial.get(source)).kind
            for entry in self.offsets.values()
            for source, text in entry.offsets
            if text is not None and '":-' in text
        }

    @property
    def bytes(self) -> int:
        """How large all files are together."""
        return sum(file.size for file in self.files)

    @cached_property
    def state_files(self) -> tuple[StateFile, ...]:
        """The files of the state: operator, partition, store, version."""
        return state_files(self.files)

    @cached_property
    def state_operators(self) -> tuple[StateOperator, ...]:
        """The stateful operators, by the files of their state."""
        operators = {file.operator for file in self.state_files} | self._operator_folders()
        return tuple(self._state_operator(operator) for operator in sorted(operators))

    def _repr_html_(self) -> str:
        from floodmark.checkpoint.views.notebook import to_html

        return to_html(self)

    def _operator_folders(self) -> frozenset[int]:
        return self.operator_folders | {
            operator
            for file in self.files
            if file.path.startswith(f"{STATE}/")
            and (operator := batch_id(file.path.split("/", 2)[1])) is not None
        }

    def _state_operator(self, operator: int) -> StateOperator:
        files = [file for file in self.state_files if file.operator == operator]
        metadata = self.operators.get(operator)
        prefix = f"{STATE}/{operator}/"
        return StateOperator(
            operator,
            metadata.operator_name if metadata else None,
            self._provider(files),
            self._partitions(operator, files),
            self._stores(operator, files),
            max((file.version for file in files), default=None),
            sum(file.size for file in self.files if file.path.startswith(prefix)),
        )

    def _provider(self, files: list[StateFile]) -> str:
        if files:
            return max(files, key=lambda file: file.version).provider
        return "rocksdb" if "RocksDB" in self.conf.get(PROVIDER_CLASS, "") else "hdfs"

    def _partitions(self, operator: int, files: list[StateFile]) -> int:
        """Return the partitions that the next start needs; if that number is wild, those that
        exist.
        """
        version = 0 if self.committed_batch is None else self.committed_batch + 1
        oldest = oldest_versions(files)
        # An early end of the listing must not make one partition of many.
        keyed = operator in self.keyed or not self.complete
        count = partition_count(self, operator, version, oldest, keyed)
        return count.there if count.is_wild else count.needed

    def _stores(self, operator: int, files: list[StateFile]) -> tuple[str, ...]:
        metadata = self.operators.get(operator)
        declared = {store.store_name for store in metadata.stores} if metadata else ()
        return store_names({file.store for file in files}, declared)


def earlier_sources(checkpoint: Checkpoint) -> tuple[SourceOffset, ...]:
    """Return where each source stands at the end of the batch before the latest."""
    batches = checkpoint.offset_ids
    return checkpoint.sources_of(batches[-2]) if len(batches) > 1 else ()
