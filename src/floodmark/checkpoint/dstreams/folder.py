"""Describes a DStreams checkpoint: its files, and what the newest readable one holds.

`checkpoint-<time>` is the whole application, written at every batch; `<uuid>/rdd-<id>` is state.
This module uses only file names; `floodmark.dstreams` reads what is inside the files.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from floodmark.checkpoint.layout import FileInfo
from floodmark.screen import fields_text, line_text

PYTHON, JVM = "python", "jvm"
RECEIVED_METADATA = "receivedBlockMetadata"
RECEIVED_DATA = "receivedData"
FILE_STREAM = "FileInputDStream"
STATE_KINDS = ("PythonStateDStream", "StateDStream", "InternalMapWithStateDStream")
"""updateStateByKey and mapWithState. Windows save RDDs too, and so does any stream on request.
Those RDDs hold the rows of a time span, not a state that the next batch continues."""

# Spark's own pattern, with a limit to what a Java long can hold.
_GRAPH = re.compile(r"checkpoint-(\d{1,18})([\w.]*)", re.ASCII)
_RDD_FILE = re.compile(r"((?:[^/]+/)?rdd-\d{1,10})/([^/]+)")
_PART = re.compile(r"part-(\d{5,9})")
_LOG = re.compile(r"log-(\d{1,18})-(\d{1,18})")


@dataclass(frozen=True)
class GraphFile:
    """One `checkpoint-<time>` file, or its `.bk`, which keeps the content before a rewrite."""

    path: str
    """The file, relative to the checkpoint."""
    time_ms: int
    """The batch time in its name."""
    is_backup: bool
    """Whether this is a `.bk` file."""
    bytes: int
    """Its size in bytes."""


@dataclass(frozen=True)
class SavedRdd:
    """One `rdd-<id>` folder: the state of a stream after one batch."""

    path: str
    """The folder, relative to the checkpoint."""
    partitions: int
    """The number of its parts."""
    bytes: int
    """The total size of its files."""
    written_ms: int | None
    """When its newest part was written; None if storage does not say."""
    missing: int | None = None
    """The first missing part: one between others, or one that `_partitioner` counts."""
    batch_time_ms: int | None = None
    """The batch whose state this is; None if the application no longer names it."""
    stream: int | None = None
    """The index in `streams` of the stream that it belongs to."""

    __repr__ = line_text


@dataclass(frozen=True)
class ReceivedLog:
    """A write-ahead log of receivers; `stream` is None in the log of received blocks."""

    path: str
    """The file, relative to the checkpoint."""
    stream: int | None
    """The receiver's stream; null for the log of received blocks."""
    start_ms: int
    """The first time that it covers."""
    end_ms: int
    """The last time that it covers."""
    bytes: int
    """Its size in bytes."""


@dataclass(frozen=True)
class OffsetRange:
    """The offsets that one batch reads of one partition of a Kafka topic."""

    topic: str
    """The topic."""
    partition: int
    """The partition."""
    from_: int
    """The first offset that the batch reads."""
    until: int
    """The offset after the last one that the batch reads."""


@dataclass(frozen=True)
class DStream:
    """One stream of the application."""

    kind: str
    """The name of Spark's class, without its package."""
    name: str | None = None
    """The operation that created the stream, as Spark's web page shows it."""
    parent: int | None = None
    """The index in `streams` of the stream that it reads; the first one of several."""
    checkpoint_interval_ms: int | None = None
    """How often its RDDs are saved; None for a stream without state."""
    rdds: Mapping[int, str] = field(default_factory=dict)
    """Batch time → the saved RDD's location, as the application names it."""
    files: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    """Batch time → the files that a file stream took."""
    offsets: Mapping[int, tuple[OffsetRange, ...]] = field(default_factory=dict)
    """Batch time → the ranges that a direct Kafka stream took."""
    directory: str | None = None
    """The folder that a file stream watches."""
    remembers_ms: int | None = None
    """How long a file stream remembers its files; older ones count as done."""
    ignores_before_ms: int | None = None
    """A file stream never takes files that are older."""
    parents: tuple[int, ...] = ()
    """The indexes in `streams` of all streams that it reads."""
    has_own_filter: bool = False
    """Whether a function of the application chooses the files of a file stream."""

    __repr__ = line_text


@dataclass(frozen=True)
class Graph:
    """The content of one `checkpoint-<time>` file."""

    checkpoint_time_ms: int
    batch_ms: int | None
    checkpoint_interval_ms: int | None
    pending_times: tuple[int, ...]
    zero_time_ms: int | None
    master: str | None
    app_name: str | None
    directory: str | None
    jars: tuple[str, ...]
    conf: Mapping[str, str]
    """Spark's settings. Values that may be secret are hidden."""
    streams: tuple[DStream, ...]
    is_python: bool
    codec: str | None


@dataclass(frozen=True)
class SparkAnswer:
    """What Spark itself says about the folder. It is asked only with --trust."""

    version: str
    """The version of the Spark that was asked."""
    restart_file: str | None
    """The newest file that this Spark can load with the classes that it was given."""
    checkpoint_time_ms: int | None
    """The newest batch that this file knows."""
    failures: Mapping[str, str] = field(default_factory=dict)
    """Newer files → why Spark cannot load them."""

    __repr__ = line_text


@dataclass(frozen=True)
class DStreamsCheckpoint:
    """What `inspect` shows of a DStreams folder; None stands for what could not be read."""

    checkpoint_times: tuple[int, ...]
    """The times in the names of the `checkpoint-<time>` files, oldest first."""
    restart_file: str | None
    """The file that Spark loads: the newest one that can be read."""
    fall_back_file: str | None
    """The file that Spark loads if `restart_file` fails."""
    batch_ms: int | None
    """The batch interval."""
    checkpoint_interval_ms: int | None
    """How often the application itself is saved: `Checkpoint.checkpointDuration`."""
    state_interval_ms: int | None
    """How often state is saved; the shortest interval if streams differ."""
    pending_times: tuple[int, ...] | None
    """Batches that were planned and not finished: Spark runs them again."""
    rdds: tuple[SavedRdd, ...]
    """The saved state: one `rdd-<id>` folder for each stream and saved batch."""
    checkpoint_time_ms: int | None = None
    """The newest batch that `restart_file` knows; the file's name can be of a later batch."""
    zero_time_ms: int | None = None
    """When the application first started; batch times are counted from it."""
    master: str | None = None
    """The Spark master that the application was started with."""
    app_name: str | None = None
    """The application's name."""
    directory: str | None = None
    """The location of this folder, as the application names it."""
    jars: tuple[str, ...] = ()
    """The jars that the application was started with."""
    conf: Mapping[str, str] = field(default_factory=dict)
    """The Spark settings that the file keeps; values that may be secret are hidden."""
    codec: str | None = None
    """The codec that compresses the file."""
    language: str | None = None
    """The application's language: `python` or `jvm`."""
    streams: tuple[DStream, ...] = ()
    """The DStreams of the application's graph."""
    graph_files: tuple[GraphFile, ...] = ()
    """Every `checkpoint-<time>` file and its backup."""
    received: tuple[ReceivedLog, ...] = ()
    """The write-ahead logs of receivers."""
    temporary: tuple[str, ...] = ()
    """Files that interrupted writes have left."""
    spark: SparkAnswer | None = None
    """What Spark said; None if it was not asked."""

    __repr__ = fields_text

    @property
    def has_kryo_records(self) -> bool:
        """Whether states are saved by Kryo. The application itself never is."""
        return self.conf.get("spark.serializer", "").endswith(".KryoSerializer")

    @property
    def state_streams(self) -> tuple[int, ...]:
        """The streams that save RDDs."""
        return tuple(at for at, one in enumerate(self.streams) if one.rdds)

    @property
    def lasting_streams(self) -> tuple[int, ...]:
        """The streams with saved state that the next batch continues: they can be carried over."""
        return tuple(at for at in self.state_streams if self.streams[at].kind in STATE_KINDS)

    @property
    def unsaved_streams(self) -> tuple[int, ...]:
        """The streams that keep state across batches, and have no saved state yet."""
        return tuple(
            at
            for at, one in enumerate(self.streams)
            if one.kind in STATE_KINDS and one.checkpoint_interval_ms is not None and not one.rdds
        )

    def inputs_of(self, stream: int) -> frozenset[int]:
        """Return the streams that a stream reads, with itself; all streams if none is an input."""
        found, waiting = {stream}, [stream]
        while waiting:
            more = set(self.streams[waiting.pop()].parents) - found
            found |= more
            waiting += more
        if any(self.streams[at].kind.endswith("InputDStream") for at in found):
            return frozenset(found)
        return frozenset(range(len(self.streams)))

    def named_streams(self, streams: Iterable[int]) -> str:
        """Return streams in words: `2 (PythonStateDStream), 5 (PythonStateDStream, not saved
        yet)`.
        """
        unsaved = self.unsaved_streams
        return ", ".join(
            f"{at} ({self.streams[at].kind}{', not saved yet' if at in unsaved else ''})"
            for at in streams
        )

    @property
    def planned_time_ms(self) -> int | None:
        """The newest batch that the streams know.

        It can be later than `checkpoint_time_ms` while a context makes up for missed batches.
        Earlier batches that are not pending were finished.
        """
        known = [
            time
            for stream in self.streams
            for times in (stream.files, stream.rdds, stream.offsets)
            for time in times
        ]
        return max(known, default=self.checkpoint_time_ms)

    @property
    def gone_rdds(self) -> tuple[tuple[int, str], ...]:
        """(stream, location) of each saved RDD that `restart_file` names and that is missing."""
        there = {rdd.path for rdd in self.rdds if rdd.partitions}
        return tuple(
            (at, location)
            for at, stream in enumerate(self.streams)
            for location in stream.rdds.values()
            if rdd_folder(location) not in there
        )


def graph_files(files: Iterable[FileInfo]) -> tuple[GraphFile, ...]:
    """Return the `checkpoint-<time>` files, oldest first: Spark tries them from the end."""
    found = [
        GraphFile(file.path, int(match[1]), bool(match[2]), file.size)
        for file in files
        if (match := _GRAPH.fullmatch(file.path))
    ]
    return tuple(sorted(found, key=lambda file: (file.time_ms, not file.is_backup)))


def saved_rdds(files: Iterable[FileInfo]) -> tuple[SavedRdd, ...]:
    """Return the saved RDDs, by path: those of one run stand together."""
    folders: dict[str, list[tuple[int | None, FileInfo]]] = defaultdict(list)
    for file in files:
        match = _RDD_FILE.fullmatch(file.path)
        if match:
            part = _PART.fullmatch(match[2])
            folders[match[1]].append((int(part[1]) if part else None, file))
    return tuple(_saved_rdd(path, found) for path, found in sorted(folders.items()))


def _saved_rdd(path: str, found: list[tuple[int | None, FileInfo]]) -> SavedRdd:
    parts = {part for part, _ in found if part is not None}
    missing = next(part for part in range(len(parts) + 1) if part not in parts)
    times = [file.mtime_ms for part, file in found if part is not None and file.mtime_ms]
    return SavedRdd(
        path,
        len(parts),
        sum(max(file.size, 0) for _, file in found),
        max(times, default=None),
        missing if missing < len(parts) else None,
    )


def received_logs(files: Iterable[FileInfo]) -> tuple[ReceivedLog, ...]:
    found = []
    for file in files:
        folder, _, rest = file.path.partition("/")
        stream, name = None, rest
        if folder == RECEIVED_DATA:
            number, _, name = rest.partition("/")
            stream = int(number) if number.isdecimal() and len(number) < 10 else None
        match = _LOG.fullmatch(name)
        if match and (folder == RECEIVED_METADATA or stream is not None):
            found.append(
                ReceivedLog(file.path, stream, int(match[1]), int(match[2]), max(file.size, 0))
            )
    return tuple(found)


def temporary_files(files: Iterable[FileInfo]) -> tuple[str, ...]:
    """Return the files of writes that never finished."""
    return tuple(
        file.path
        for file in files
        if file.path == "temp" or "-attempt-" in file.path.rsplit("/", 1)[-1]
    )


def rdd_folder(location: str) -> str:
    """Return `<uuid>/rdd-<id>`, the end of an RDD's location: its folder in the checkpoint."""
    return "/".join(location.rstrip("/").split("/")[-2:])
