"""A checkpoint as one frozen value: what was listed, what was read, what could not be.

Only the entries that were asked for are read; `offset_ids` and `commit_ids` tell
of all that are there.
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
    OFFSETS,
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
from floodmark.connectors.registry import can_be, look_alikes, read_source_offset
from floodmark.connectors.source import UNKNOWN, SourceOffset
from floodmark.errors import CannotRead, MalformedFile

if TYPE_CHECKING:  # a class of its own for each thing that is found: slow to load
    from floodmark.checkpoint.dstreams.folder import DStreamsCheckpoint

_NOTHING: Mapping[Any, Any] = MappingProxyType({})


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
    """As Spark 4.0 and later name it; earlier ones wrote no name."""
    provider: str
    """What wrote the state: `hdfs` or `rocksdb`."""
    partitions: int
    """How many partitions its state has."""
    stores: tuple[str, ...]
    """The names of its stores: `default`, or one for each side of a join."""
    version: int | None
    """The newest state version there; batch N leaves version N + 1."""
    bytes: int
    """How large its files are together."""


@dataclass(frozen=True)
class Checkpoint:
    path: str
    kind: Kind
    files: tuple[FileInfo, ...]
    complete: bool = True
    """False where the listing of a very large checkpoint was stopped early."""
    metadata: QueryMetadata | None = None
    offset_ids: tuple[int, ...] = ()
    commit_ids: tuple[int, ...] = ()
    offsets: Mapping[int, OffsetEntry] = field(default_factory=lambda: _NOTHING)
    commits: Mapping[int, CommitEntry] = field(default_factory=lambda: _NOTHING)
    operators: Mapping[int, OperatorMetadata] = field(default_factory=lambda: _NOTHING)
    initial: Mapping[str, bytes] = field(default_factory=lambda: _NOTHING)
    """`sources/<id>/0` of the sources whose offset alone does not tell their kind."""
    unreadable: tuple[Unreadable, ...] = ()
    not_given: frozenset[str] = frozenset()
    """Those of them that storage did not give: asked again, it may."""
    keyed: frozenset[int] = frozenset()
    """Operators with files in partition 0 alone whose schema has keys: the others are lost."""
    said_kinds: Mapping[str, str] = field(default_factory=lambda: _NOTHING)
    """What the user, the note of the last start or the code says of sources that look alike."""
    disputed: Mapping[str, str] = field(default_factory=lambda: _NOTHING)
    """Source → why its kind is not known: what is said of it contradicts its offset."""
    dstreams: DStreamsCheckpoint | None = None
    """What a DStreams folder holds, which has no log of batches."""
    operator_folders: frozenset[int] = frozenset()
    """Operators of the state that are known by their folders, where not all files were listed."""
    not_read: tuple[str, ...] = ()
    """What describes more and was not read, so that the requests stay few."""

    def __repr__(self) -> str:
        from floodmark.screen import fields_text  # no command shows it

        return fields_text(self)

    @property
    def query_id(self) -> str | None:
        return self.metadata.id if self.metadata else None

    @property
    def latest_batch(self) -> int | None:
        return self.offset_ids[-1] if self.offset_ids else None

    @property
    def committed_batch(self) -> int | None:
        return self.commit_ids[-1] if self.commit_ids else None

    @property
    def in_flight_batch(self) -> int | None:
        """Planned and not committed: Spark runs it again."""
        latest, committed = self.latest_batch, self.committed_batch
        if latest is None or (committed is not None and committed >= latest):
            return None
        return latest

    @property
    def latest_entry(self) -> OffsetEntry | None:
        return None if self.latest_batch is None else self.offsets.get(self.latest_batch)

    @property
    def latest_commit(self) -> CommitEntry | None:
        return None if self.committed_batch is None else self.commits.get(self.committed_batch)

    def refuse_broken_offsets(self, batch: int, do: str) -> None:
        """Raises where the batch's entry of the offset log is there and cannot be read."""
        for broken in self.unreadable:
            if broken.path == f"{OFFSETS}/{batch}":
                raise MalformedFile(f"{self.path}/{broken.path} cannot be read", broken.reason, do)

    def refuse_not_given(self) -> None:
        """Raises where storage kept a file back: unlike damage, nobody knows what is in it."""
        for item in self.unreadable:
            if item.path in self.not_given:
                raise CannotRead(
                    f"{self.path}/{item.path}: storage did not give it",
                    item.reason,
                    "Repeat the command. If storage has lost it for good, remove it, and "
                    "`floodmark repair` says what can be done.",
                )

    @property
    def watermark_ms(self) -> int | None:
        """What the next batch starts with."""
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
        entry = self.latest_entry
        return entry.metadata.batch_timestamp_ms if entry and entry.metadata else None

    @property
    def offset_log_version(self) -> int | None:
        return self.latest_entry.version if self.latest_entry else None

    @property
    def commit_log_version(self) -> int | None:
        return self.latest_commit.version if self.latest_commit else None

    @property
    def conf(self) -> Mapping[str, str]:
        """What the checkpoint pins: it overrides the session at restart."""
        entry = self.latest_entry
        return entry.metadata.conf if entry and entry.metadata else _NOTHING

    @property
    def sources(self) -> tuple[SourceOffset, ...]:
        return () if self.latest_batch is None else self.sources_of(self.latest_batch)

    def sources_of(self, batch: int) -> tuple[SourceOffset, ...]:
        """Where each source stands at the end of a batch."""
        entry = self.offsets.get(batch)
        if entry is None:
            return ()
        return tuple(self.understood(source, text) for source, text in entry.offsets)

    def twin_of(self, source: str) -> str | None:
        """The source that keeps files for this one too, where that can be.

        A stream that a query reads twice, as in a self-join, is one source with two places in
        the offsets, always the same; only the first of them has a folder.
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
        """An offset of a source, with all that is known of its kind."""
        try:
            found = read_source_offset(source, text, self.initial.get(source))
            said = self.said_kinds.get(source)
            if said is not None and not can_be(said, found.offset):
                return found  # an entry of an earlier time, when another source stood there
            kind = said or self._kind_in_other_batches(source, found.kind)
            return found if kind == found.kind else replace(found, kind=kind)
        except MalformedFile:
            # Loading says so of the entries it checks; one of thousands must not hide the rest.
            return SourceOffset(source, UNKNOWN, text, text)

    def _kind_in_other_batches(self, source: str, kind: str) -> str:
        """Event Hubs' -1, which tells it from Kafka, is gone once a partition has an event."""
        told = self._below_zero.get(source)
        return told if told is not None and told in look_alikes(kind) else kind

    @cached_property
    def _below_zero(self) -> Mapping[str, str]:
        """Source → its kind by a batch that has a negative number."""
        return {
            source: read_source_offset(source, text, self.initial.get(source)).kind
            for entry in self.offsets.values()
            for source, text in entry.offsets
            if text is not None and '":-' in text
        }

    @property
    def bytes(self) -> int:
        return sum(file.size for file in self.files)

    @cached_property
    def state_files(self) -> tuple[StateFile, ...]:
        return state_files(self.files)

    @cached_property
    def state_operators(self) -> tuple[StateOperator, ...]:
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
        """As many as the next start needs; where that number is wild, those that are there."""
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
