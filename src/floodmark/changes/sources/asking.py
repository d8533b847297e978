"""Asks the real sources and the sink what they still have. Clients and storage are given.

`doctor --sources` asks without Spark; a start asks with Spark's own clients and credentials.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from floodmark.changes.carry.sink_log import FOLDER
from floodmark.changes.repair.sink import known_sink
from floodmark.changes.sources.earlier_positions import noted_options
from floodmark.changes.sources.kafka_cluster import Cluster
from floodmark.checkpoint.evidence import Evidence
from floodmark.checkpoint.layout import batch_id
from floodmark.checkpoint.model import Checkpoint
from floodmark.checkpoint.outside import Bounds, Outside, SinkLog, SourcePlaces, TableLog
from floodmark.connectors.delta.offset import BASE_INDEXES, DeltaOffset, parse_delta_offset
from floodmark.connectors.files.file_log import SourceFile
from floodmark.connectors.files.offset import parse_log_offset
from floodmark.connectors.kafka.offset import parse_kafka_offset
from floodmark.connectors.kafka.subscription import subscribed_topics
from floodmark.connectors.registry import about
from floodmark.connectors.source import SourceOffset
from floodmark.errors import CannotRead, FloodmarkError, MalformedFile
from floodmark.storage import delta_log
from floodmark.storage.files import Files
from floodmark.storage.source_log import read_source_log

Open = Callable[[str], Files]
AskKafka = Callable[[Mapping[str, str], Iterable[str]], Mapping[str, Mapping[int, Bounds]]]
"""A source's options and topics → the bounds of those topics that are there."""
_FILES_LOOKED_AT = 2000
_COMMITS_LOOKED_AT = 20


@dataclass(frozen=True)
class SourceToAsk:
    position: SourceOffset
    """Where the next batch begins; its offset is None where that is the source's start."""
    options: Mapping[str, str] = field(default_factory=dict)
    """As the code, the last start note or the user gives them; keys in lower case."""


def ask(
    files: Files,
    evidence: Evidence,
    note: Mapping[str, Any] | None,
    places: SourcePlaces,
    opened: Open,
) -> Outside:
    """For `doctor`: everything that answers; what does not is said, and stops nothing."""
    batch = evidence.begins_after
    newest = max(evidence.positions, default=-1)
    known = evidence.positions.get(newest if batch is None else batch, ())
    asked = [
        SourceToAsk(source, _with_places(_noted(note, source.id), places))
        for source in known
        if places.asks_sources
    ]
    done = None if batch is not None else -1
    found = ask_sources(files, evidence.checkpoint, asked, _cluster_bounds, opened, done)
    sink = _sink(evidence, note, places, opened)
    return Outside(found.kafka, found.tables, found.inputs, found.silent, sink)


def ask_sources(
    files: Files,
    checkpoint: Checkpoint,
    sources: Iterable[SourceToAsk],
    ask_kafka: AskKafka,
    opened: Open,
    done: int | None = None,
) -> Outside:
    """`done` is the last entry of file sources that counts as read, in place of the offsets'."""
    kafka: dict[str, Mapping[str, Mapping[int, Bounds]]] = {}
    tables: dict[str, TableLog] = {}
    inputs: dict[str, tuple[str, ...]] = {}
    silent: dict[str, str] = {}
    for source in sources:
        position = source.position
        try:
            if about(position).has_topics:
                kafka[position.id] = ask_kafka(source.options, _topics(source))
            elif about(position).names_table:
                tables[position.id] = _table(source, opened)
            elif about(position).lists_files:
                inputs[position.id] = _inputs(files, checkpoint, position, opened, done)
        except FloodmarkError as error:
            silent[position.id] = error.what
    return Outside(kafka, tables, inputs, silent)


def _noted(note: Mapping[str, Any] | None, source: str) -> dict[str, str]:
    """The options that the last start gave a source."""
    number = batch_id(source)
    return {} if number is None else noted_options(note or {}, number)


def _with_places(options: dict[str, str], places: SourcePlaces) -> dict[str, str]:
    """What the user says goes before what a note says."""
    if places.bootstrap_servers:
        options["kafka.bootstrap.servers"] = places.bootstrap_servers
    if places.table:
        options["path"] = places.table
    return options


def _topics(source: SourceToAsk) -> tuple[str, ...]:
    offset = source.position.offset
    known = () if offset is None else parse_kafka_offset(offset)
    return tuple(sorted({*known, *subscribed_topics(source.options)}))


def _cluster_bounds(
    options: Mapping[str, str], topics: Iterable[str]
) -> Mapping[str, Mapping[int, Bounds]]:
    servers = options.get("kafka.bootstrap.servers")
    if not servers:
        raise MalformedFile("nothing says where its brokers are (--bootstrap-servers HOST:PORT)")
    cluster = Cluster(servers)
    try:
        found = {topic: cluster.bounds(topic) for topic in topics}
    finally:
        cluster.close()
    return {topic: bounds for topic, bounds in found.items() if bounds}


def _table(source: SourceToAsk, opened: Open) -> TableLog:
    place = source.options.get("path")
    if not place:
        raise MalformedFile("nothing says where its table is (--table PATH)")
    files = opened(place)
    versions = delta_log.versions(files)
    if not versions:
        return TableLog(place, None, -1, -1)
    offset = parse_delta_offset(source.position.offset)
    gone = () if offset.is_starting_version else _vacuumed(files, offset, versions)
    return TableLog(place, delta_log.table_id(files), versions[0], versions[-1], gone)


def _vacuumed(files: Files, offset: DeltaOffset, versions: list[int]) -> tuple[str, ...]:
    ahead = [version for version in versions if version >= offset.reservoir_version]
    wanted: list[str] = []
    for version in ahead[:_COMMITS_LOOKED_AT]:
        added = [
            unquote(str(action["add"].get("path", "")))
            for action in delta_log.actions(files, version)
            if isinstance(action.get("add"), dict) and action["add"].get("dataChange", True)
        ]
        if version == offset.reservoir_version and offset.index not in BASE_INDEXES:
            added = added[max(0, offset.index + 1) :]
        wanted += added
    # A shallow clone names files of another table by their full address.
    own = [path for path in wanted[:_FILES_LOOKED_AT] if ":" not in path]
    return _absent(files, own)


def _absent(files: Files, paths: list[str]) -> tuple[str, ...]:
    folders = {path.rpartition("/")[0] for path in paths}
    there = {
        f"{folder}/{name}" if folder else name
        for folder in folders
        for name in files.level(folder).files
    }
    return tuple(path for path in paths if path not in there)


def _inputs(
    files: Files, checkpoint: Checkpoint, source: SourceOffset, opened: Open, done: int | None
) -> tuple[str, ...]:
    """The files after the last finished batch: in flight, or seen and waiting."""
    if done is None:
        done = -1 if source.offset is None else parse_log_offset(source.offset)
    seen = read_source_log(files, checkpoint, source.id)
    pending = [file for file in seen if file.batch_id > done][:_FILES_LOOKED_AT]
    by_folder: dict[str, list[SourceFile]] = {}
    for file in pending:
        by_folder.setdefault(file.path.rpartition("/")[0], []).append(file)
    gone: list[str] = []
    for folder, listed in by_folder.items():
        there = set(opened(_address(folder)).level().files)
        gone += [
            file.readable_path
            for file in listed
            if unquote(file.path.rpartition("/")[2]) not in there
        ]
    return tuple(gone)


def _address(folder: str) -> str:
    """As `opened` takes it: Spark writes file names as URIs, with %20 for a space."""
    scheme, colon, rest = folder.partition(":")
    return "/" + unquote(rest).lstrip("/") if scheme == "file" and colon else folder


def _sink(
    evidence: Evidence, note: Mapping[str, Any] | None, places: SourcePlaces, opened: Open
) -> SinkLog | None:
    given = None if places.sink is None else (places.sink, opened(places.sink))
    sink = known_sink(note, given, opened)
    if places.sink is not None and not sink.newest and not _is_a_sink(opened(places.sink)):
        raise CannotRead(
            f"{places.sink}: neither a Delta table nor a file sink's output",
            "It has no _delta_log and no _spark_metadata, so there is nothing to compare with.",
            "Give the folder that the query writes to, or leave --sink out.",
        )
    if sink.place is None or sink.kind not in ("delta", "files"):
        return None
    name = "" if sink.kind == "files" else evidence.checkpoint.query_id or ""
    return SinkLog(sink.place, sink.kind, sink.newest.get(name))


def _is_a_sink(files: Files) -> bool:
    return bool(delta_log.is_delta_table(files) or files.level(FOLDER).files)
