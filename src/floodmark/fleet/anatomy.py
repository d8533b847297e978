"""Describes each file of a checkpoint, and whether a restart reads it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from floodmark.checkpoint.layout import (
    CHECKSUM,
    COMMITS,
    METADATA,
    NOTES,
    OFFSETS,
    OPERATOR_METADATA,
    SOURCES,
    STATE,
    STATE_SCHEMA,
    FileInfo,
    batch_id,
    is_temporary,
    main_file,
    names_in,
    parse_state_file,
)
from floodmark.checkpoint.model import Checkpoint
from floodmark.checkpoint.state_chain import StateIndex, next_batch
from floodmark.connectors.files.file_log import names_to_read
from floodmark.connectors.registry import about
from floodmark.fleet.dstreams_anatomy import DStreamsFiles
from floodmark.fleet.state_map import Tables
from floodmark.fleet.told_files import Reads, ToldFile, told_note

_MOST_FILES = 3000


@dataclass(frozen=True)
class FileFact:
    name: str
    size: int
    mtime_ms: int | None
    what: str
    reads: Reads
    why: str


@dataclass(frozen=True)
class FolderFact:
    path: str
    """The folder's path; empty for the checkpoint's own folder."""
    files: tuple[FileFact, ...]
    count: int
    bytes: int
    read_bytes: int
    """The bytes of files that a restart reads."""


@dataclass(frozen=True)
class Anatomy:
    folders: tuple[FolderFact, ...]
    files: int
    bytes: int
    read_files: int
    read_bytes: int
    left_out: int
    """The number of files that are counted but not listed."""


def anatomy(checkpoint: Checkpoint, tables: Tables) -> Anatomy:
    inside = checkpoint.dstreams
    reader = DStreamsFiles(checkpoint, inside) if inside else _Reader(checkpoint, tables)
    by_folder: dict[str, list[tuple[FileInfo, FileFact]]] = defaultdict(list)
    for file in checkpoint.files:
        folder, _, name = file.path.rpartition("/")
        what, reads, why = _tell(reader, file.path)
        fact = FileFact(name, max(file.size, 0), file.mtime_ms, what, reads, why)
        by_folder[folder].append((file, fact))
    folders, left = [], _MOST_FILES
    for folder in sorted(by_folder, key=_in_spark_order):
        facts = sorted(
            (fact for _, fact in by_folder[folder]), key=lambda fact: _natural(fact.name)
        )
        shown = facts[:left]
        left -= len(shown)
        folders.append(
            FolderFact(
                folder,
                tuple(shown),
                len(facts),
                sum(fact.size for fact in facts),
                sum(fact.size for fact in facts if fact.reads is Reads.YES),
            )
        )
    every = [fact for facts in by_folder.values() for _, fact in facts]
    read = [fact for fact in every if fact.reads is Reads.YES]
    return Anatomy(
        tuple(folders),
        len(every),
        sum(fact.size for fact in every),
        len(read),
        sum(fact.size for fact in read),
        max(len(every) - _MOST_FILES, 0),
    )


def _tell(reader: _Reader | DStreamsFiles, path: str) -> ToldFile:
    note = told_note(path)
    if note is not None:
        return note
    main = main_file(path)
    if main is not None and not is_temporary(path.rpartition("/")[2]):
        _, reads, _ = reader.tell(main)
        return (
            f"Hadoop's checksum of {main.rpartition('/')[2]}.",
            reads,
            "It is read with its file.",
        )
    return reader.tell(path)


class _Reader:
    """Describes one path after another."""

    def __init__(self, checkpoint: Checkpoint, tables: Tables) -> None:
        self._checkpoint = checkpoint
        self._latest, self._committed = checkpoint.latest_batch, checkpoint.committed_batch
        chains = StateIndex(checkpoint).chains(next_batch(checkpoint) or 0)
        self._state = {file.path for chain in chains for file in chain.files}
        zips = [chain.snapshot.path for chain in chains if chain.snapshot is not None]
        self._tables = {table.path for path in zips for table in tables.get(path, ())}
        self._all_opened = all(path in tables for path in zips if path.endswith(".zip"))
        self._logs = _source_logs(checkpoint)

    def tell(self, path: str) -> ToldFile:
        top, _, rest = path.partition("/")
        name = path.rpartition("/")[2]
        if is_temporary(name):
            return "A write that never finished.", Reads.NO, "Spark ignores its name."
        if path == METADATA:
            return "The query's id, for ever.", Reads.YES, "Sinks know the stream by this id."
        if top in (OFFSETS, COMMITS):
            batch = batch_id(rest)
            if batch is None:
                return "No entry of the log.", Reads.NO, "Spark reads plain numbers only."
            return self._offsets(batch) if top == OFFSETS else self._commits(batch)
        if top == SOURCES:
            return self._source(rest)
        if top == STATE:
            return self._state_file(path)
        return "Nothing that Spark writes here.", Reads.NO, "Spark does not know this name."

    def _offsets(self, batch: int) -> ToldFile:
        what = f"The plan of batch {batch:,}: where each source ends."
        if batch == self._latest:
            return what, Reads.YES, "The newest plan: a restart begins with it."
        if self._latest is not None and batch == self._latest - 1:
            return what, Reads.YES, "It is where the newest batch begins."
        return what, Reads.NO, "History: a rewind can go back to it."

    def _commits(self, batch: int) -> ToldFile:
        what = f"Batch {batch:,} is done."
        if batch == self._committed:
            return what, Reads.YES, "The newest commit: it tells what to run next."
        return what, Reads.NO, "History: only the newest commit counts."

    def _source(self, rest: str) -> ToldFile:
        source, _, name = rest.partition("/")
        if source in self._logs:
            what = f"Input files that source {source} has found."
            if name in self._logs[source]:
                return what, Reads.YES, "Without it, files would be read twice."
            return what, Reads.NO, "A later .compact file holds its lines."
        if name == "0":
            return f"Where source {source} began.", Reads.YES, "It is read when the source is made."
        return f"Source {source}'s own file.", Reads.MAYBE, "Each source decides what it reads."

    def _state_file(self, path: str) -> ToldFile:
        found = parse_state_file(path)
        if found is None:
            return self._beside_state(path)
        version = f"version {found.version:,}, which batch {found.version - 1:,} left"
        kinds = {
            "delta": f"Changes of the state: {version}.",
            "changelog": f"Changes of the state: {version}.",
            "snapshot": f"The whole state of a partition: {version}.",
            "zip": f"The list of a RocksDB snapshot: {version}.",
        }
        if path in self._state:
            return kinds[found.kind], Reads.YES, "A restart rebuilds the state from it."
        return kinds[found.kind], Reads.NO, "History, or a snapshot after it holds the same."

    def _beside_state(self, path: str) -> ToldFile:
        if f"/{OPERATOR_METADATA}/" in path or f"/{STATE_SCHEMA}/" in path:
            return (
                "What the operator says of itself: name, partitions, schema.",
                Reads.YES,
                "A restart compares it with the new plan.",
            )
        if path.endswith(CHECKSUM):
            return "Spark's checksum of a state file.", Reads.MAYBE, "It is read with its file."
        if "/SSTs/" in path or "/logs/" in path:
            what = "Rows of the state, as RocksDB keeps them."
            if path in self._tables:
                return what, Reads.YES, "The snapshot that a restart loads names it."
            if self._all_opened:
                return what, Reads.NO, "Only older snapshots name it, or none."
            return what, Reads.MAYBE, "The snapshot that names it was not opened."
        return "Nothing that Spark reads here.", Reads.NO, "Spark does not know this name."


def _source_logs(checkpoint: Checkpoint) -> Mapping[str, Collection[str]]:
    """Return, for each file source, the entries of its log that a restart reads."""
    found = {}
    for source in checkpoint.sources:
        if about(source).lists_files:
            names = names_in(checkpoint.files, f"{SOURCES}/{source.id}")
            found[source.id] = frozenset(map(str, names_to_read(names)))
    return found


_ORDER = {"": 0, OFFSETS: 1, COMMITS: 2, SOURCES: 3, STATE: 4, NOTES: 5}


def _in_spark_order(folder: str) -> tuple[int, list[tuple[int, int, str]]]:
    return _ORDER.get(folder.split("/")[0], 6), [
        part for one in folder.split("/") for part in _natural(one)
    ]


def _natural(name: str) -> list[tuple[int, int, str]]:
    """Return a sort key that puts 9 before 10, and names without a number last."""
    number = name.lstrip(".").split(".")[0].split("_")[0]
    if number.isascii() and number.isdecimal() and len(number) < 19:
        return [(0, int(number), name)]
    return [(1, 0, name)]
