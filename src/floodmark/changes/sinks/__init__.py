"""Holds what a plan knows of a query's sink, and what it says of each possible kind.

A sink that remembers (query id, batch) takes each batch once: Delta by its txn entries,
txnAppId and a ledger likewise, Iceberg by its snapshots as long as they are not expired. The file
sink remembers the batch number alone, in the `_spark_metadata` of its output. Kafka, foreach and
the rest remember nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from floodmark.changes.plan import Consequence
from floodmark.connectors.sink_memory import forgets, goes_by_number, goes_by_query

DELTA = "Delta, Iceberg, or a ledger of (query, batch)"
FILES = "files (csv, json, parquet, orc, text)"
REST = "Kafka, foreach and others that remember nothing"
EVERY = "every sink"
Consequences = tuple[Consequence, ...]
REPLACED = "is in complete mode: each batch replaces the content, so nothing is stored twice"


@dataclass(frozen=True)
class Sink:
    """The query's sink according to floodmark's notes; Spark stores nothing about it."""

    kind: str
    path: str | None = None
    complete: bool = False

    @property
    def replaces(self) -> bool:
        """Whether each batch replaces the content, as a Delta sink does in complete mode."""
        return goes_by_query(self.kind) and self.complete


def sink_of(note: Mapping[str, Any] | None) -> Sink | None:
    if not note or not isinstance(note.get("sink"), str):
        return None
    options = note.get("sink_options")
    path = options.get("path") if isinstance(options, dict) else None
    complete = str(note.get("output_mode", "")).lower() == "complete"
    return Sink(note["sink"], path if isinstance(path, str) else None, complete)


def _kinds(sink: Sink | None) -> tuple[str, ...]:
    if sink is None:
        return (DELTA, FILES, REST)
    if goes_by_number(sink.kind):
        return (FILES,)
    if sink.kind == "foreachBatch":
        # Its use of a batch is unknown; it has no log of the file sink.
        return (DELTA, REST)
    return (DELTA,) if goes_by_query(sink.kind) else (REST,)


def chosen(sink: Sink | None, every: Consequences) -> Consequences:
    kinds = _kinds(sink)
    return tuple(_said_of(sink, item) for item in every if item.sink in kinds)


def _said_of(sink: Sink | None, item: Consequence) -> Consequence:
    """Add that an Iceberg table forgets batches whose snapshots are expired."""
    if item.sink != DELTA or not (sink is None or forgets(sink.kind)):
        return item
    if not item.skips and " skips " not in f" {item.words} ":
        return item
    who = "Iceberg" if sink is None else "it"
    words = f"{item.words}; {who} has forgotten a batch whose snapshot is expired, and writes it"
    return replace(item, words=words)


def maybe_again(kind: str, batch: int, words: str) -> Consequence:
    return Consequence(kind, words, True, again=(batch, batch), certain=False)


def failing(skips: Consequence, sink: Sink | None, batch: int | None) -> Consequence:
    """Add that the query fails: a sink of Spark does not compute a batch that it skips.

    `once` computes such a batch for its state. `batch` is the first one that is not skipped, and
    needs that state; None: unknown.
    """
    if sink is not None and (sink.kind == "foreachBatch" or forgets(sink.kind)):
        return skips  # Iceberg computes the batch, and leaves out its commit alone
    whose = ' of format("delta")' if skips.sink == DELTA and sink is None else ""
    at = "" if batch is None else f" at batch {batch}"
    words = (
        f"{skips.words}; then a query{whose} fails{at}, because the state of skipped batches "
        "is never computed"
    )
    return replace(skips, words=words, fails_at=batch)


def or_replaced(told: Consequence, sink: Sink | None) -> Consequence:
    """Return a consequence, unless the sink replaces its content with each batch."""
    return Consequence(told.sink, REPLACED) if sink is not None and sink.replaces else told


def for_every_sink(sink: Sink | None, item: Consequence) -> Consequences:
    delta = or_replaced(replace(item, sink=DELTA), sink)
    return chosen(sink, (delta, replace(item, sink=FILES), replace(item, sink=REST)))


def batches_words(first: int, last: int) -> str:
    return f"batches {first} to {last}" if last > first else f"batch {first}"
