"""Asks the real sources and the sink what they still have, for `doctor`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from floodmark.changes.sinks.known_sink import known_sink
from floodmark.checkpoint.evidence import Evidence
from floodmark.checkpoint.live_answers import LiveAnswers, SinkLog, SourcePlaces
from floodmark.checkpoint.start_note import source_options
from floodmark.connectors.delta.offset import KIND as DELTA
from floodmark.connectors.delta.table_log import is_delta_table
from floodmark.connectors.files.file_log import SINK_LOG
from floodmark.connectors.iceberg.sink import is_iceberg_table, remembered_by_name
from floodmark.connectors.iceberg.table import is_name
from floodmark.connectors.kafka.live import cluster_bounds
from floodmark.connectors.kafka.offset import SERVERS
from floodmark.connectors.live import Open, SourceToAsk, ask_sources
from floodmark.connectors.registry import about
from floodmark.connectors.sink_memory import ICEBERG_SINK
from floodmark.connectors.source import SourceOffset
from floodmark.errors import CannotRead, NoAnswer, WrongUse
from floodmark.storage.files import Files


def ask(
    files: Files,
    evidence: Evidence,
    note: Mapping[str, Any] | None,
    places: SourcePlaces,
    opened: Open,
) -> LiveAnswers:
    """Return all answers; a source that does not answer is reported and stops nothing."""
    asked = [
        SourceToAsk(source, _with_places(source_options(note, source.id), places))
        for source in _known(evidence)
        if places.asks_sources
    ]
    done = None if evidence.begins_after is not None else -1
    found = ask_sources(files, evidence.checkpoint, asked, cluster_bounds, opened, done)
    sink = _sink(evidence, note, places, opened)
    return replace(found, sink=sink)


def ask_table(files: Files, evidence: Evidence, table: str, opened: Open) -> LiveAnswers:
    """Ask only the one table that the user has named."""
    of_tables = [one for one in _known(evidence) if about(one).asked_with == DELTA.asked_with]
    asked = [SourceToAsk(source, {"path": table}) for source in of_tables]
    if not asked:
        raise WrongUse(f"--table {table}: no source of this checkpoint is a table")
    found = ask_sources(files, evidence.checkpoint, asked, cluster_bounds, opened)
    for why in found.silent.values():
        raise NoAnswer(f"--table {table}: {why}")
    return found


def _known(evidence: Evidence) -> tuple[SourceOffset, ...]:
    batch, newest = evidence.begins_after, max(evidence.positions, default=-1)
    return evidence.positions.get(newest if batch is None else batch, ())


def _with_places(options: dict[str, str], places: SourcePlaces) -> dict[str, str]:
    """Replace the note's locations by those that the user names."""
    if places.bootstrap_servers:
        options[SERVERS] = places.bootstrap_servers
    if places.table:
        options["path"] = places.table
    return options


def _sink(
    evidence: Evidence, note: Mapping[str, Any] | None, places: SourcePlaces, opened: Open
) -> SinkLog | None:
    if places.sink is not None and is_name(places.sink):
        newest = remembered_by_name(places.sink).get(evidence.checkpoint.query_id or "")
        return SinkLog(places.sink, ICEBERG_SINK, newest)
    given = None if places.sink is None else (places.sink, opened(places.sink))
    sink = known_sink(note, given, opened)
    if places.sink is not None and not sink.newest and not _is_a_sink(opened(places.sink)):
        raise CannotRead(
            f"{places.sink}: no Delta table, no Iceberg table, and no file sink's output",
            "It has no _delta_log, no metadata/*.metadata.json and no _spark_metadata, so there is "
            "nothing to compare with.",
            "Give the folder that the query writes to, or leave --sink out.",
        )
    if sink.place is None or sink.kind is None or not sink.log_is_read:
        return None
    name = "" if sink.by_number else evidence.checkpoint.query_id or ""
    return SinkLog(sink.place, sink.kind, sink.newest.get(name))


def _is_a_sink(files: Files) -> bool:
    return bool(is_delta_table(files) or is_iceberg_table(files) or files.level(SINK_LOG).files)
