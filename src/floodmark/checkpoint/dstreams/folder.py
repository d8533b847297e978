"""A DStreams checkpoint as data: the files by their names, and what the newest sound one holds.

`checkpoint-<time>` is the whole application, written at every batch; `<uuid>/rdd-<id>` is state.
Which file is what is told by names here; `floodmark.dstreams` reads what is inside them.
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
"""updateStateByKey and mapWithState. Windows save RDDs too, and any stream that is told to: these
hold the rows of a while, and no state that goes on."""

# Spark's own pattern, with a limit to what a Java long can hold.
_GRAPH = re.compile(r"checkpoint-(\d{1,18})([\w.]*)", re.ASCII)
_RDD_FILE = re.compile(r"((?:[^/]+/)?rdd-\d{1,10})/([^/]+)")
_PART = re.compile(r"part-(\d{5,9})")
_LOG = re.compile(r"log-(\d{1,18})-(\d{1,18})")


@dataclass(frozen=True)
class GraphFile:
    """One `checkpoint-<time>` file, or its `.bk`: what it held before it was written again."""

    path: str
    """The file, relative to the checkpoint."""
    time_ms: int
    """The batch time in its name."""
    is_backup: bool
    """It is a `.bk` file."""
    bytes: int
    """How large it is."""


@dataclass(frozen=True)
class SavedRdd:
    """One `rdd-<id>` folder: the state of a stream after one batch."""

    path: str
    """The folder, relative to the checkpoint."""
    partitions: int
    """How many parts it has."""
    bytes: int
    """How large its files are together."""
    written_ms: int | None
    """When its newest part was written, where storage tells."""
    missing: int | None = None
    """The first part that is not there: one between others, or after them by `_partitioner`."""
    batch_time_ms: int | None = None
    """The batch whose state it is, where the application still names it."""
    stream: int | None = None
    """Which of `streams` it belongs to."""

    __repr__ = line_text


@dataclass(frozen=True)
class ReceivedLog:
    """A write-ahead log of receivers: `stream` is None for the log of which blocks came."""

    path: str
    """The file, relative to the checkpoint."""
    stream: int | None
    """The receiver's stream; null for the log of received blocks."""
    start_ms: int
    """The first time that it covers."""
    end_ms: int
    """The last time that it covers."""
    bytes: int
    """How large it is."""


@dataclass(frozen=True)
class OffsetRange:
    """What one batch reads of one partition of a Kafka topic."""

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
    """Spark's class, without its package."""
    name: str | None = None
    """The operation that made it, as Spark's web page shows it."""
    parent: int | None = None
    """Which of `streams` it reads; the first one of several."""
    checkpoint_interval_ms: int | None = None
    """How often its RDDs are saved; None for a stream without state."""
    rdds: Mapping[int, str] = field(default_factory=dict)
    """Batch time → the saved RDD's location, as the application names it."""
    files: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    """Batch time → the files that a file stream took."""
    offsets: Mapping[int, tuple[OffsetRange, ...]] = field(default_factory=dict)
    """Batch time → the ranges that a direct Kafka stream took."""
    directory: str | None = None
    """What a file stream watches."""
    remembers_ms: int | None = None
    """How long a file stream remembers its files; older ones count as done."""
    ignores_before_ms: int | None = None
    """A file stream never takes files that are older."""
    parents: tuple[int, ...] = ()
    """Every one of `streams` that it reads."""
    has_own_filter: bool = False
    """A function of the application says which files a file stream takes."""

    __repr__ = line_text


@dataclass(frozen=True)
class Graph:
    """What one `checkpoint-<time>` file holds."""

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
    """Values that may be secret are hidden."""
    streams: tuple[DStream, ...]
    is_python: bool
    codec: str | None


@dataclass(frozen=True)
class SparkAnswer:
    """What Spark itself says of the folder; it is asked only with --trust."""

    version: str
    """The version of the Spark that was asked."""
    restart_file: str | None
    """The newest file that this Spark, with the classes that it was given, can take."""
    checkpoint_time_ms: int | None
    """The batch up to which that file tells."""
    failures: Mapping[str, str] = field(default_factory=dict)
    """Newer files → why it cannot take them."""

    __repr__ = line_text


@dataclass(frozen=True)
class DStreamsCheckpoint:
    """What `inspect` tells of a DStreams folder; None for what could not be read."""

    checkpoint_times: tuple[int, ...]
    """The times in the names of the `checkpoint-<time>` files, oldest first."""
    restart_file: str | None
    """The file that Spark takes: the newest that can be read."""
    fall_back_file: str | None
    """The one that it takes if that one fails."""
    batch_ms: int | None
    """The batch interval."""
    checkpoint_interval_ms: int | None
    """How often the application itself is saved: `Checkpoint.checkpointDuration`."""
    state_interval_ms: int | None
    """How often state is saved; the shortest, where streams differ."""
    pending_times: tuple[int, ...] | None
    """Batches that were planned and not finished: Spark runs them again."""
    rdds: tuple[SavedRdd, ...]
    """The saved state: one `rdd-<id>` folder for each stream and saved batch."""
    checkpoint_time_ms: int | None = None
    """The batch up to which `restart_file` tells; its name may be of a later one."""
    zero_time_ms: int | None = None
    """When the application first started: batch times are counted from it."""
    master: str | None = None
    """The Spark master that the application was started with."""
    app_name: str | None = None
    """The application's name."""
    directory: str | None = None
    """Where the application says that this folder is."""
    jars: tuple[str, ...] = ()
    """The jars that the application was started with."""
    conf: Mapping[str, str] = field(default_factory=dict)
    """The Spark settings that the file keeps; values that may be secret are hidden."""
    codec: str | None = None
    """How the file is compressed."""
    language: str | None = None
    """The application's language: `python` or `jvm`."""
    streams: tuple[DStream, ...] = ()
    """The DStreams of the application's graph."""
    graph_files: tuple[GraphFile, ...] = ()
    """Every `checkpoint-<time>` file and its backup."""
    received: tuple[ReceivedLog, ...] = ()
    """The write-ahead logs of receivers."""
    temporary: tuple[str, ...] = ()
    """Files that a write which was cut short has left."""
    spark: SparkAnswer | None = None
    """None where Spark was not asked."""

    __repr__ = fields_text

    @property
    def has_kryo_records(self) -> bool:
        """Whether states are saved by Kryo; the application itself never is."""
        return self.conf.get("spark.serializer", "").endswith(".KryoSerializer")

    @property
    def state_streams(self) -> tuple[int, ...]:
        """The streams that save RDDs."""
        return tuple(at for at, one in enumerate(self.streams) if one.rdds)

    @property
    def lasting_streams(self) -> tuple[int, ...]:
        """Of the streams that save RDDs, those whose state goes on: they can be carried over."""
        return tuple(at for at in self.state_streams if self.streams[at].kind in STATE_KINDS)

    @property
    def unsaved_streams(self) -> tuple[int, ...]:
        """The streams with a state that goes on and of which none is saved yet."""
        return tuple(
            at
            for at, one in enumerate(self.streams)
            if one.kind in STATE_KINDS and one.checkpoint_interval_ms is not None and not one.rdds
        )

    def inputs_of(self, stream: int) -> frozenset[int]:
        """The streams behind a stream, itself among them; all where no input is found there."""
        found, waiting = {stream}, [stream]
        while waiting:
            more = set(self.streams[waiting.pop()].parents) - found
            found |= more
            waiting += more
        if any(self.streams[at].kind.endswith("InputDStream") for at in found):
            return frozenset(found)
        return frozenset(range(len(self.streams)))

    def named_streams(self, streams: Iterable[int]) -> str:
        """Streams in words: `2 (PythonStateDStream), 5 (PythonStateDStream, not saved yet)`."""
        unsaved = self.unsaved_streams
        return ", ".join(
            f"{at} ({self.streams[at].kind}{', not saved yet' if at in unsaved else ''})"
            for at in streams
        )

    @property
    def planned_time_ms(self) -> int | None:
        """The newest batch that the streams know.

        It can be later than `checkpoint_time_ms`, while a context makes up for batches that it
        missed. Batches before it that are not pending were finished.
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
        """(stream, location) of each saved RDD that `restart_file` names and that is not there."""
        there = {rdd.path for rdd in self.rdds if rdd.partitions}
        return tuple(
            (at, location)
            for at, stream in enumerate(self.streams)
            for location in stream.rdds.values()
            if rdd_folder(location) not in there
        )


def graph_files(files: Iterable[FileInfo]) -> tuple[GraphFile, ...]:
    """Oldest first, in the order of Spark's: it begins at the end."""
    found = [
        GraphFile(file.path, int(match[1]), bool(match[2]), file.size)
        for file in files
        if (match := _GRAPH.fullmatch(file.path))
    ]
    return tuple(sorted(found, key=lambda file: (file.time_ms, not file.is_backup)))


def saved_rdds(files: Iterable[FileInfo]) -> tuple[SavedRdd, ...]:
    """By path; those of one run together."""
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
    """Writes that were never finished."""
    return tuple(
        file.path
        for file in files
        if file.path == "temp" or "-attempt-" in file.path.rsplit("/", 1)[-1]
    )


def rdd_folder(location: str) -> str:
    """Where an RDD lies in its checkpoint: `<uuid>/rdd-<id>`, the end of its location."""
    return "/".join(location.rstrip("/").split("/")[-2:])
