"""Finds where a source that is new to a checkpoint begins, from --start or the code's options."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from floodmark.changes.carry.changed_sources import NewSource
from floodmark.changes.carry.source_files import NEVER_READ
from floodmark.checkpoint.live_answers import Bounds
from floodmark.connectors.delta import table_log
from floodmark.connectors.delta.offset import parse_delta_offset
from floodmark.connectors.files.file_log import SourceFile, render_log
from floodmark.connectors.kafka.offset import is_kafka_form
from floodmark.connectors.kafka.subscription import subscribed_topics
from floodmark.connectors.registry import family, kind_named
from floodmark.connectors.source import parse_offset_text, render_json
from floodmark.engine.code.drawing import Drawing
from floodmark.engine.code.query import Source
from floodmark.engine.spark.hadoop import checkpoint_files
from floodmark.engine.spark.kafka_admin import Broker
from floodmark.errors import CannotRead, FloodmarkError, MalformedFile, WrongUse
from floodmark.rules.restarts.source_moves import own_start

EARLIEST, LATEST = "earliest", "latest"
_LISTING = ("pathglobfilter", "recursivefilelookup", "basepath", "modifiedbefore", "modifiedafter")
_AS_WRITTEN = "Give an offset as `floodmark offsets --json` shows it for such a source."
_DELTA_STARTS = ("startingversion", "startingtimestamp")


def begin(found: Drawing, at: int, known_as: str, folder: str, where: str | None) -> NewSource:
    source = found.sources[at]
    if where is None:
        return NewSource(
            known_as, folder, f"it begins as the code says: {own_start(found.outline.sources[at])}."
        )
    known = kind_named(family(source.kind))
    option = f"--start {at}={where}"
    if known.has_topics:
        return _kafka(found, source, NewSource(known_as, folder, ""), option, where)
    if known.lists_files:
        return _files(found, source, NewSource(known_as, folder, ""), option, where)
    if where in (EARLIEST, LATEST):
        if known.names_table:
            return _delta(found, source, NewSource(known_as, folder, ""), option, where)
        raise WrongUse(
            f"{option}: Floodmark does not know such a position for a source of kind {source.kind}",
            do="Give an offset as such a source writes it, or let the code's own options decide.",
        )
    offset = _parsed(option, where)
    if known.names_table:
        _require_table(found, source, option, offset)
    text = render_json(offset) if "\n" in where else where
    return NewSource(known_as, folder, f"it begins at {text}, as --start says.", text)


def _parsed(option: str, text: str) -> Any:
    try:
        return parse_offset_text(text)
    except MalformedFile as error:
        raise WrongUse(f"{option}: not an offset: {error.what}", do=_AS_WRITTEN) from None


# -- Kafka ---------------------------------------------------------------------------------


def _kafka(found: Drawing, source: Source, new: NewSource, option: str, where: str) -> NewSource:
    topics = subscribed_topics(source.options)
    given = {} if where in (EARLIEST, LATEST) else _parsed(option, where)
    if where not in (EARLIEST, LATEST) and not is_kafka_form(given):
        raise WrongUse(
            f"{option}: these are not offsets of Kafka",
            do='Write them as for startingOffsets: {"orders":{"0":23,"1":-2}}.',
        )
    if not topics:
        raise WrongUse(
            f"{option}: the source reads a pattern of topics",
            "Only Kafka knows the topics, when the stream starts.",
            "Set startingOffsets in the code, and leave --start out.",
        )
    strange = sorted(set(given) - set(topics))
    if strange:
        raise WrongUse(
            f"{option}: the source does not read {strange[0]}",
            do=f"It reads {', '.join(topics)}: give offsets of these.",
        )
    bounds = _bounds(found, source, topics, option)
    resolved = {
        topic: {str(n): _resolved(option, topic, n, one, given, where) for n, one in all_.items()}
        for topic, all_ in bounds.items()
    }
    for topic, partitions in given.items():
        unknown = sorted(set(partitions) - set(resolved.get(topic, {})))
        if unknown:
            raise WrongUse(
                f"{option}: {topic} has no partition {unknown[0]}",
                do=f"It has {', '.join(sorted(resolved.get(topic, {})))}: leave the others out.",
            )
    shown = "; ".join(
        f"{topic} {', '.join(f'{n}: {o}' for n, o in sorted(all_.items()))}"
        for topic, all_ in sorted(resolved.items())
    )
    text = render_json(resolved)
    return NewSource(
        new.id,
        new.folder,
        f"it begins at {shown}, as --start says.",
        initial=b"\0v1\n" + text.encode(),
    )


def _bounds(
    found: Drawing, source: Source, topics: Iterable[str], option: str
) -> Mapping[str, Mapping[int, Bounds]]:
    try:
        with Broker.connect(found.spark, source.options) as broker:
            bounds = broker.bounds(topics)
    except CannotRead as error:
        raise CannotRead(
            f"{option}: Kafka does not answer: {error.what}",
            "Floodmark asks Kafka for the partitions, and where they begin and end.",
            "Make the brokers reachable from here, or set startingOffsets in the code and leave "
            "--start out.",
        ) from None
    missing = sorted(set(topics) - set(bounds))
    if missing:
        raise WrongUse(f"{option}: Kafka has no topic {missing[0]}", do="Create it first.")
    return bounds


def _resolved(
    option: str,
    topic: str,
    partition: int,
    bounds: Bounds,
    given: Mapping[str, Mapping[str, int]],
    where: str,
) -> int:
    # As in Spark: what an open transaction commits later is read.
    latest = bounds.readable(committed=True)
    if where in (EARLIEST, LATEST):
        return bounds.earliest if where == EARLIEST else latest
    at = given.get(topic, {}).get(str(partition))
    if at is None:
        raise WrongUse(
            f"{option}: {topic} partition {partition} has no offset",
            do="Give every partition; -2 is its beginning, -1 its end.",
        )
    at = {-2: bounds.earliest, -1: latest}.get(at, at)
    if not bounds.earliest <= at <= bounds.end:
        raise WrongUse(
            f"{option}: {topic} partition {partition} has the offsets {bounds.earliest} to "
            f"{bounds.end}, and {at} is not one of them",
            do="Give one of these offsets; -2 is the beginning, -1 the end.",
        )
    return at


# -- Delta ---------------------------------------------------------------------------------


def _delta(found: Drawing, source: Source, new: NewSource, option: str, where: str) -> NewSource:
    set_in_code = [name for name in _DELTA_STARTS if name in source.options]
    if where == EARLIEST:
        if set_in_code:
            raise WrongUse(
                f"{option}: the code sets {set_in_code[0]}, so the table is not read whole",
                do=f"Remove {set_in_code[0]} from the code, and leave --start out.",
            )
        return NewSource(
            new.id, new.folder, "it begins with the whole table at the start, as --start says."
        )
    files = checkpoint_files(found.spark, _path(source, option))
    versions = table_log.versions(files)
    if not versions:
        raise WrongUse(
            f"{option}: {source.path} is not a Delta table", do="Give the source a table's path."
        )
    offset = {
        "sourceVersion": 1,
        "reservoirId": table_log.table_id(files),
        "reservoirVersion": versions[-1] + 1,
        "index": -1,
        "isStartingVersion": False,
    }
    begins = f"it begins after version {versions[-1]} of the table, as --start says."
    return NewSource(new.id, new.folder, begins, render_json(offset))


def _require_table(found: Drawing, source: Source, option: str, offset: Any) -> None:
    try:
        place = parse_delta_offset(offset)
    except FloodmarkError as error:
        raise WrongUse(f"{option}: not an offset of Delta: {error.what}", do=_AS_WRITTEN) from None
    if source.path is None:
        return
    table = table_log.table_id(checkpoint_files(found.spark, source.path))
    if table is not None and place.reservoir_id != table:
        raise WrongUse(
            f"{option}: the table is {table}, but the offset belongs to {place.reservoir_id}",
            do="Give an offset of this table, or earliest or latest.",
        )


def _path(source: Source, option: str) -> str:
    if source.path is None:
        raise WrongUse(
            f"{option}: the source is a table of a catalog, and has no path",
            do="Give an offset as JSON, or set startingVersion in the code.",
        )
    return source.path


# -- files ---------------------------------------------------------------------------------


def _files(found: Drawing, source: Source, new: NewSource, option: str, where: str) -> NewSource:
    if where == EARLIEST:
        return NewSource(
            new.id, new.folder, "it begins with every file in the folder, as --start says."
        )
    if where != LATEST:
        raise WrongUse(
            f"{option}: a new list of files cannot begin at an offset",
            do="earliest reads every file that is there, latest reads only new files.",
        )
    seen = listed(found.spark, source.options)
    entries = [
        SourceFile(path, time, NEVER_READ, render_json(_entry(path, time))) for path, time in seen
    ]
    files = "file lies" if len(entries) == 1 else "files lie"
    return NewSource(
        new.id,
        new.folder,
        f"{len(entries)} {files} there and are not read, as --start says; it begins with new "
        "files.",
        initial=render_log(entries) if entries else None,
    )


def _entry(path: str, time: int) -> dict[str, Any]:
    return {"path": path, "timestamp": time, "batchId": NEVER_READ}


def listed(spark: Any, options: Mapping[str, str]) -> list[tuple[str, int]]:
    """Return a source's files as Spark finds them: (path as its log writes it, time in ms)."""
    from pyspark.errors import AnalysisException

    kept = {key: value for key, value in options.items() if key in _LISTING}
    try:
        rows = (
            spark.read.format("binaryFile")
            .options(**kept)
            .load(options["path"])
            .selectExpr("path", "unix_millis(modificationTime) AS at")
            .collect()
        )
    except AnalysisException as error:
        if "PATH_NOT_FOUND" in str(error):
            return []
        raise CannotRead(
            f"{options['path']} cannot be listed: {error}", do="Check whether Spark can read it."
        ) from None
    paths = spark._jvm.org.apache.hadoop.fs.Path
    return sorted(
        (_as_logged(str(paths(row["path"]).toUri().toString())), int(row["at"])) for row in rows
    )


def _as_logged(path: str) -> str:
    """Return a path as Spark's log writes it: with three slashes for a local path."""
    bare = path.removeprefix("file:")
    return path if bare == path or bare.startswith("//") else f"file://{bare}"
