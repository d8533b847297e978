"""What a change means for each kind of sink, in words that stand in the plan.

A sink that remembers (query id, batch) takes each batch once: Delta by its txn entries,
txnAppId and a ledger likewise. The file sink remembers the batch number alone, in the
`_spark_metadata` of its output. Kafka, foreach and the rest remember nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from floodmark.changes.plan import Consequence

FILE_SINKS = frozenset({"csv", "json", "parquet", "orc", "text", "avro"})
_DELTA = "Delta, or a ledger of (query, batch)"
_FILE = "files (csv, json, parquet, orc, text)"
_REST = "Kafka, foreach and others that remember nothing"


@dataclass(frozen=True)
class Sink:
    """What floodmark's own notes say of the query's sink; Spark keeps nothing of it."""

    kind: str
    path: str | None = None


def sink_of(note: Mapping[str, Any] | None) -> Sink | None:
    if not note or not isinstance(note.get("sink"), str):
        return None
    options = note.get("sink_options")
    path = options.get("path") if isinstance(options, dict) else None
    return Sink(note["sink"], path if isinstance(path, str) else None)


def _kind(sink: Sink | None) -> str | None:
    if sink is None:
        return None
    if sink.kind in FILE_SINKS:
        return _FILE
    # What foreachBatch does with a batch is its own affair: both may hold.
    return _DELTA if sink.kind == "delta" else None if sink.kind == "foreachBatch" else _REST


def _chosen(sink: Sink | None, every: tuple[Consequence, ...]) -> tuple[Consequence, ...]:
    kind = _kind(sink)
    return tuple(item for item in every if kind is None or item.sink == kind)


def goes_on(in_flight: int | None, sink: Sink | None) -> tuple[Consequence, ...]:
    """Same id, numbers go on, and the in-flight batch is run again over its range."""
    if in_flight is None:
        return (Consequence("every sink", "goes on with the next batch: nothing is repeated"),)
    return _chosen(
        sink,
        (
            Consequence(_DELTA, f"has batch {in_flight} and skips it, or has it not and takes it"),
            Consequence(_FILE, f"knows by its log whether it has batch {in_flight}"),
            Consequence(
                _REST,
                f"may get batch {in_flight} a second time, as after any restart of Spark",
                True,
            ),
        ),
    )


def new_identity(in_flight: int | None, sink: Sink | None) -> tuple[Consequence, ...]:
    again = f"may get batch {in_flight} twice" if in_flight is not None else "gets nothing twice"
    return _chosen(
        sink,
        (
            Consequence(
                _DELTA,
                f"does not know the new id: {again}, unless the sink is new",
                in_flight is not None,
            ),
            Consequence(_FILE, "remembers numbers, not ids: nothing changes for it"),
            Consequence(_REST, again, in_flight is not None),
        ),
    )


def restarted_numbers(highest: int, new_id: bool, sink: Sink | None) -> tuple[Consequence, ...]:
    return _chosen(
        sink,
        (
            Consequence(
                _DELTA,
                "takes the batches, for the id is new"
                if new_id
                else f"DROPS every batch up to {highest} silently, unless the sink is new: "
                "it has those numbers of this id",
                not new_id,
            ),
            Consequence(
                _FILE,
                f"DROPS every batch up to {highest} silently, unless its output folder is new",
                True,
            ),
            Consequence(_REST, "does not look at numbers"),
        ),
    )


def reads_again(
    after: int, until: int, trimmed: bool, moved: bool, sink: Sink | None
) -> tuple[Consequence, ...]:
    """Back to an earlier place in the same checkpoint, under a new id."""
    spent = _batches(after + 1, until)
    what = f"the records of {spent}" if until > after else ""
    if moved:
        what = f"{what} and of" if what else "the records of"
        what += " all offsets that are given back"
    twice = f"gets {what} a second time, unless you take them out of it"
    file_words = "its log has none of the numbers that come"
    if until > after:
        file_words = (
            f"its log is trimmed with it: readers of the log see no record of {spent} twice"
            if trimmed
            else f"SKIPS new batches up to {until}, whatever is in them, unless its log is "
            "trimmed too (--sink FOLDER) or its output folder is new"
        )
    return _chosen(
        sink,
        (
            Consequence(_DELTA, twice, True),
            Consequence(_FILE, file_words, until > after and not trimmed),
            Consequence(_REST, twice, True),
        ),
    )


def _batches(first: int, last: int) -> str:
    return f"batches {first} to {last}" if last > first else f"batch {first}"


def again(after: int, until: int, sink: Sink | None) -> tuple[Consequence, ...]:
    """Earlier batches read again under numbers that no sink has seen."""
    words = f"gets the records of {_batches(after + 1, until)} a second time"
    return _chosen(sink, tuple(Consequence(kind, words, True) for kind in (_DELTA, _FILE, _REST)))


def dropped_in_flight(batch: int, sink: Sink | None) -> tuple[Consequence, ...]:
    words = f"gets the records of batch {batch} again, where it has them already"
    return _chosen(sink, tuple(Consequence(kind, words, True) for kind in (_DELTA, _FILE, _REST)))
