"""What mends a pipeline that does not survive a drill."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from floodmark.drills.comparing import PointResult

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
    """Its Delta writes carry a txnAppId."""
    copied: bool = False
    """It began as a copy of the real one; else empty, or as its own kind of sink begins."""


def advice_for(
    points: Sequence[PointResult],
    sinks: Sequence[DrilledSink],
    sources: Sequence[str],
    output_mode: str = "append",
) -> Iterator[str]:
    """Sentences, the most telling first."""
    failed = {one.point: one for one in points if one.survived is False}
    if not failed:
        return
    clocks = _clocks(points)
    if clocks:
        yield (
            f"Rows differ in {', '.join(clocks)} alone, at every point. If it is a clock's or a "
            f"random value, leave it out and drill again: --ignore {','.join(clocks)}"
        )
        if not any(one.repeated for one in failed.values()):
            return
    if UNDISTURBED in failed:
        yield (
            "The function overwrites the whole table with the rows of one batch, and the query's "
            "output mode gives only new or changed rows: earlier ones are wiped out, without any "
            'crash. Use outputMode("complete"), or merge by key (DeltaTable.merge).'
        )
    if NEW_CHECKPOINT in failed:
        yield (
            "The txnAppId is the same for every checkpoint, so Delta takes the batches of a new "
            "checkpoint for old ones and drops them (floodmark explain fixed-transaction-id). Use "
            "once.delta, or build it from the query's id."
        )
    if "socket" in sources:
        yield (
            "A socket gives each line once: what a killed batch had read is gone, whatever the "
            "sink does (floodmark explain non-replayable-source). Put Kafka, files or a Delta "
            "table between."
        )
        return
    crashed = [one for name, one in failed.items() if name not in (UNDISTURBED, NEW_CHECKPOINT)]
    if crashed:
        yield from _after_crash(crashed, sinks, output_mode)


def _clocks(points: Sequence[PointResult]) -> list[str]:
    """Columns in which rows differ wherever the driver was killed.

    A counter, or a sum of rows that came twice, differs only where a batch ran again.
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
                f"{place}: rows come again with another value in {', '.join(again)}: a number that "
                "is counted, a clock's or a random one. They are repeated rows all the same."
            )
    for sink in sinks:
        if sink.place not in hurt:
            continue
        if sink.by == "spark":
            yield f"{sink.place}: Spark's own sink lost or repeated rows; report it to the project."
        elif sink.kind == "delta":
            yield (
                f"{sink.place}: Spark runs a batch again that died before its commit "
                "(floodmark explain batch-id-unused). Write with once.delta: it records the batch "
                "in the table's own log; or merge by key."
            )
        elif sink.kind in ("sqlite", "postgresql"):
            yield (
                f"{sink.place}: a batch that runs again inserts its rows again, with new numbers "
                "where the database counts them (floodmark explain batch-id-unused). Write with "
                "once.sql: rows and batch id are one transaction; or put the batch id into the key."
            )
        else:
            kind = "text" if sink.kind == "lines" else sink.kind
            # Spark's file sink takes no other mode.
            own = f'Let the query write them (writeStream.format("{kind}")), write'
            yield (
                f"{sink.place}: files of a batch that runs again come on top of the first ones "
                "(floodmark explain batch-id-unused). "
                f"{own if output_mode.lower() == 'append' else 'Write'} a Delta table with "
                "once.delta, or put the batch id into the path and overwrite."
            )
    for one in failed:
        if one.words:
            yield f"{one.point}: {one.words}"
