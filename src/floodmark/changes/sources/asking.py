"""Asks the real sources and the sink what they still have, for `doctor`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from floodmark.changes.repair.sink import known_sink
from floodmark.checkpoint.evidence import Evidence
from floodmark.checkpoint.live_answers import LiveAnswers, SinkLog, SourcePlaces
from floodmark.checkpoint.start_note import source_options
from floodmark.connectors.delta.table_log import is_delta_table
from floodmark.connectors.files.file_log import SINK_LOG
from floodmark.connectors.kafka.live import SERVERS, cluster_bounds
from floodmark.connectors.live import Open, SourceToAsk, ask_sources
from floodmark.errors import CannotRead
from floodmark.storage.files import Files


def ask(
    files: Files,
    evidence: Evidence,
    note: Mapping[str, Any] | None,
    places: SourcePlaces,
    opened: Open,
) -> LiveAnswers:
    """Every answer. A source that does not answer is reported, and stops nothing."""
    batch = evidence.begins_after
    newest = max(evidence.positions, default=-1)
    known = evidence.positions.get(newest if batch is None else batch, ())
    asked = [
        SourceToAsk(source, _with_places(source_options(note, source.id), places))
        for source in known
        if places.asks_sources
    ]
    done = None if batch is not None else -1
    found = ask_sources(files, evidence.checkpoint, asked, cluster_bounds, opened, done)
    sink = _sink(evidence, note, places, opened)
    return LiveAnswers(found.kafka, found.tables, found.inputs, found.silent, sink)


def _with_places(options: dict[str, str], places: SourcePlaces) -> dict[str, str]:
    """What the user names replaces what a note names."""
    if places.bootstrap_servers:
        options[SERVERS] = places.bootstrap_servers
    if places.table:
        options["path"] = places.table
    return options


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
    if sink.place is None or sink.kind is None or not (sink.by_query or sink.by_number):
        return None
    name = "" if sink.by_number else evidence.checkpoint.query_id or ""
    return SinkLog(sink.place, sink.kind, sink.newest.get(name))


def _is_a_sink(files: Files) -> bool:
    return bool(is_delta_table(files) or files.level(SINK_LOG).files)
