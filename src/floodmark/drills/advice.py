"""Gives advice on how to repair a pipeline that does not survive a drill."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from floodmark.drills.sink_difference import PointResult

UNDISTURBED, NEW_CHECKPOINT, RANDOM = "undisturbed", "new-checkpoint", "random"


@dataclass(frozen=True)
class DrilledSink:
    """A place that the pipeline writes to."""

    place: str
    """The place, as the pipeline names it."""
    kind: str
    """Its format: delta, parquet, jdbc, and so on."""
    by: str
    """`spark` or `function`."""
    transaction: bool = False
    """Whether its Delta writes have a txnAppId."""
    copied: bool = False
    """Whether it began as a copy of the real sink; otherwise it began empty or new."""


def advice_for(
    points: Sequence[PointResult],
    sinks: Sequence[DrilledSink],
    sources: Sequence[str],
    output_mode: str = "append",
) -> Iterator[str]:
    """Yield sentences, the most helpful first."""
    failed = {one.point: one for one in points if one.survived is False}
    if not failed:
        return
    clocks = _clocks(points)
    if clocks:
        yield (
            f"Rows differ only in {', '.join(clocks)}, at every point. If its values come from a "
            f"clock or are random, leave it out and drill again: --ignore {','.join(clocks)}"
        )
        if not any(one.repeated for one in failed.values()):
            return
    if UNDISTURBED in failed:
        yield (
            "The function overwrites the whole table with the rows of one batch, and the "
            "query's output mode gives only new or changed rows: earlier rows are overwritten "
            'even without a crash. Use outputMode("complete"), or merge by key '
            "(DeltaTable.merge)."
        )
    if NEW_CHECKPOINT in failed:
        yield (
            "The txnAppId is the same for every checkpoint, so Delta treats the batches of a "
            "new checkpoint as old ones and drops them (floodmark explain "
            "fixed-transaction-id). Use once.delta, or build the txnAppId from the query's id."
        )
    if "socket" in sources:
        yield (
            "A socket sends each line once: the rows that a killed batch had read are lost, "
            "whatever the sink does (floodmark explain non-replayable-source). Put Kafka, files "
            "or a Delta table between the socket and the query."
        )
        return
    crashed = [one for name, one in failed.items() if name not in (UNDISTURBED, NEW_CHECKPOINT)]
    if crashed:
        yield from _after_crash(crashed, sinks, output_mode)


def _clocks(points: Sequence[PointResult]) -> list[str]:
    """Return the columns in which rows differ wherever the driver was killed.

    A counter, or a sum over repeated rows, differs only if a batch ran again.
    """
    hit = [
        {name for sink in one.sinks.values() for name in sink.only_in}
        for one in points
        if one.survived is not None and one.point not in (UNDISTURBED, NEW_CHECKPOINT)
    ]
    return sorted(set.intersection(*hit)) if hit else []


def _after_crash(
    failed: Sequence[PointResult], sinks: Sequence[DrilledSink], output_mode: str
) -> Iterator[str]:
    hurt = {place for one in failed for place in one.sinks}
    for place in sorted(hurt):
        told = [one.sinks[place] for one in failed if place in one.sinks]
        again = sorted({name for one in told if one.repeated for name in one.only_in})
        if again:
            yield (
                f"{place}: rows come again with another value in {', '.join(again)}: a counter, "
                "a time or a random value. They still count as repeated rows."
            )
    for sink in sinks:
        if sink.place not in hurt:
            continue
        if sink.by == "spark":
            yield f"{sink.place}: Spark's own sink lost or repeated rows; report it to the project."
        elif sink.kind == "delta":
            yield (
                f"{sink.place}: Spark runs a batch that died before its commit again (floodmark "
                "explain batch-id-unused). Write with once.delta, which records the batch in "
                "the table's log, or merge by key."
            )
        elif sink.kind in ("sqlite", "postgresql"):
            yield (
                f"{sink.place}: a batch that runs again inserts its rows again, with new numbers "
                "if the database counts them (floodmark explain batch-id-unused). Write with "
                "once.sql, which puts rows and batch id into one transaction, or put the batch "
                "id into the key."
            )
        else:
            kind = "text" if sink.kind == "lines" else sink.kind
            # Spark's file sink accepts no other mode.
            own = f'Let the query write them (writeStream.format("{kind}")), write'
            yield (
                f"{sink.place}: a batch that runs again adds its files to the first ones "
                "(floodmark explain batch-id-unused). "
                f"{own if output_mode.lower() == 'append' else 'Write'} a Delta table with "
                "once.delta, or put the batch id into the path and overwrite."
            )
    for one in failed:
        if one.words:
            yield f"{one.point}: {one.words}"
