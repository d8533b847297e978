"""Asks the sources of a query before it starts, with Spark's own clients and credentials."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from floodmark.checkpoint.layout import SOURCES
from floodmark.checkpoint.live_answers import Bounds, LiveAnswers
from floodmark.checkpoint.model import Checkpoint, Kind
from floodmark.checkpoint.relative_path import RelativePath
from floodmark.connectors.live import SourceToAsk, ask_sources
from floodmark.connectors.registry import about, kind_named
from floodmark.connectors.source import SourceOffset
from floodmark.engine.spark.hadoop import checkpoint_files
from floodmark.engine.spark.kafka_admin import Broker
from floodmark.engine.start.query_to_start import QueryToStart
from floodmark.errors import FileGone


def positions(start: QueryToStart) -> dict[str, SourceOffset]:
    """Return where the next batch begins, by source; empty for a stream that starts over."""
    checkpoint = start.saved.checkpoint
    if checkpoint is None or checkpoint.latest_batch is None:
        return {}
    latest = checkpoint.latest_batch
    done = latest - 1 if checkpoint.in_flight_batch is not None else latest
    if done >= 0:
        return {source.id: source for source in checkpoint.sources_of(done)}
    return {one.id: _first(start, one) for one in checkpoint.sources_of(latest)}


def _first(start: QueryToStart, planned: SourceOffset) -> SourceOffset:
    """Return where a source's first batch begins, if that batch is in flight."""
    kind = about(planned)
    if kind.names_table:
        return planned  # the table's snapshot: the end of the batch names it
    nowhere = SourceOffset(planned.id, planned.kind, None, None)
    if not kind.begins_once:
        return nowhere
    try:
        initial = start.files.read(RelativePath(f"{SOURCES}/{planned.id}/0"))
    except FileGone:
        return nowhere
    return SourceOffset(planned.id, planned.kind, kind.first_offset(initial), None)


def ask_before_start(
    start: QueryToStart, begins: Mapping[str, SourceOffset], allowed: frozenset[str]
) -> LiveAnswers:
    """Ask the real sources what they have; a source that does not answer is in `silent`."""

    def ask_kafka(
        options: Mapping[str, str], topics: Iterable[str]
    ) -> Mapping[str, Mapping[int, Bounds]]:
        with Broker.connect(start.spark, options) as broker:
            return broker.bounds(topics)

    none = Checkpoint(start.location, Kind.STRUCTURED_STREAMING, ())
    return ask_sources(
        start.files,
        start.saved.checkpoint or none,
        _to_ask(start, begins, allowed),
        ask_kafka,
        lambda place: checkpoint_files(start.spark, place),
    )


def _to_ask(
    start: QueryToStart, begins: Mapping[str, SourceOffset], allowed: frozenset[str]
) -> Iterator[SourceToAsk]:
    for known_as, source in start.sources:
        position = begins.get(known_as)
        if kind_named(source.kind).has_topics:
            # A new stream has no offsets, but its topics can be missing.
            begin = position or SourceOffset(known_as, source.kind, None, None)
            position = SourceOffset(known_as, source.kind, begin.offset, begin.text)
        if position is None or (about(position).names_table and source.path is None):
            continue
        if not allowed.issuperset(about(position).start_rules):
            yield SourceToAsk(position, source.options)
