"""Asks the real sources and the sink what they still have, for `doctor --sources`. No Spark.

Where they are stands in the notes of the last start, or the user says it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import unquote

from floodmark.changes.broker import Cluster
from floodmark.changes.mends.sink import known_sink
from floodmark.changes.sinklog import FOLDER
from floodmark.checkpoint.evidence import Evidence
from floodmark.checkpoint.filelog import SourceFile
from floodmark.checkpoint.outside import Bounds, Outside, Places, SinkLog, TableLog
from floodmark.checkpoint.sources import (
    BASE_INDEXES,
    DeltaOffset,
    SourceKind,
    SourceOffset,
    parse_delta_offset,
    parse_kafka_offset,
    parse_log_offset,
)
from floodmark.errors import CannotRead, FloodmarkError, MalformedFile
from floodmark.storage import delta_log
from floodmark.storage.files import Files
from floodmark.storage.inputs import read_source_log

Open = Callable[[str], Files]
_FILES_LOOKED_AT = 2000
_COMMITS_LOOKED_AT = 20


def ask(
    files: Files, evidence: Evidence, note: Mapping[str, Any] | None, places: Places, opened: Open
) -> Outside:
    """Everything that answers; what does not is said, and stops nothing."""
    kafka: dict[str, Mapping[str, Mapping[int, Bounds]]] = {}
    tables: dict[str, TableLog] = {}
    inputs: dict[str, tuple[str, ...]] = {}
    silent: dict[str, str] = {}
    batch = evidence.begins_after
    newest = max(evidence.positions, default=-1)
    known = evidence.positions.get(newest if batch is None else batch, ())
    for source in known if places.asks_sources else ():
        noted = _noted(note, source.id)
        try:
            if source.kind is SourceKind.KAFKA:
                kafka[source.id] = _kafka(source, noted, places)
            elif source.kind is SourceKind.DELTA:
                tables[source.id] = _table(source, noted, places, opened)
            elif source.kind is SourceKind.FILE:
                inputs[source.id] = _inputs(files, evidence, source, opened)
        except FloodmarkError as error:
            silent[source.id] = error.what
    return Outside(kafka, tables, inputs, silent, _sink(evidence, note, places, opened))


def _noted(note: Mapping[str, Any] | None, source: str) -> Mapping[str, Any]:
    """The options that the last start gave a source."""
    sources = (note or {}).get("sources")
    if isinstance(sources, list) and source.isdecimal() and int(source) < len(sources):
        options = sources[int(source)].get("options")
        if isinstance(options, dict):
            return {str(key).lower(): value for key, value in options.items()}
    return {}


def _kafka(
    source: SourceOffset, noted: Mapping[str, Any], places: Places
) -> Mapping[str, Mapping[int, Bounds]]:
    servers = places.bootstrap_servers or noted.get("kafka.bootstrap.servers")
    if not servers:
        raise MalformedFile("nothing says where its brokers are (--bootstrap-servers HOST:PORT)")
    cluster = Cluster(str(servers))
    try:
        return {
            topic: {
                partition: (bounds.earliest, bounds.end)
                for partition, bounds in cluster.bounds(topic).items()
            }
            for topic in parse_kafka_offset(source.offset)
        }
    finally:
        cluster.close()


def _table(
    source: SourceOffset, noted: Mapping[str, Any], places: Places, opened: Open
) -> TableLog:
    place = places.table or noted.get("path")
    if not place:
        raise MalformedFile("nothing says where its table is (--table PATH)")
    files = opened(str(place))
    versions = delta_log.versions(files)
    if not versions:
        return TableLog(str(place), None, -1, -1)
    offset = parse_delta_offset(source.offset)
    gone = () if offset.is_starting_version else _vacuumed(files, offset, versions)
    return TableLog(str(place), delta_log.table_id(files), versions[0], versions[-1], gone)


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
    files: Files, evidence: Evidence, source: SourceOffset, opened: Open
) -> tuple[str, ...]:
    """The files after the last finished batch: in flight, or seen and waiting."""
    done = -1
    if evidence.begins_after is not None and source.offset is not None:
        done = parse_log_offset(source.offset)
    seen = read_source_log(files, evidence.checkpoint, source.id)
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
    scheme, colon, rest = folder.partition(":")
    if scheme == "file" and colon:
        return "/" + unquote(rest).lstrip("/")
    return f"s3:{rest}" if scheme in ("s3a", "s3n") else folder


def _sink(
    evidence: Evidence, note: Mapping[str, Any] | None, places: Places, opened: Open
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
