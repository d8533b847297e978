"""Prints batches as a table, and the positions of sources after one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from floodmark.checkpoint.timeline import Batch, Status
from floodmark.cli.text import (
    clock,
    style,
    table,
)
from floodmark.connectors.registry import advance
from floodmark.connectors.source import uncut
from floodmark.visible import one_line

if TYPE_CHECKING:
    from floodmark.checkpoint.views.position import Position
_COLOUR = {
    Status.COMMITTED: "green",
    Status.IN_FLIGHT: "yellow",
    Status.UNCOMMITTED_GAP: "yellow",
    Status.OFFSET_PURGED: "dim",
}


def batches(found: Sequence[Batch]) -> str:
    if not found:
        return "No batch was planned yet."
    rows = [("batch", "status", "planned at", "watermark", "reads")]
    rows += [
        (
            str(batch.batch),
            style(batch.status.value, _COLOUR[batch.status]),
            clock(batch.time_ms) if batch.time_ms else "–",
            clock(batch.watermark_ms) if batch.watermark_ms else "–",
            _all_reach(batch, before) or _no_offsets(batch),
        )
        for before, batch in zip([None, *found], found, strict=False)
    ]
    header, *lines = table(rows, indent="").splitlines()
    return "\n".join([style(header, "bold"), *lines])


def _no_offsets(batch: Batch) -> str:
    unread = batch.time_ms is None and batch.status is not Status.OFFSET_PURGED
    return "cannot be read: `floodmark inspect` says why" if unread else "–"


def _all_reach(batch: Batch, before: Batch | None) -> str:
    """Return the ranges of all sources, from the end of the batch before if that is listed."""
    starts = {}
    if before is not None and before.batch == batch.batch - 1:
        starts = {source.id: source for source in before.sources}
    reached = [
        (source.id, ", ".join(advance(source, starts.get(source.id)))) for source in batch.sources
    ]
    if len(reached) == 1:
        return reached[0][1]
    return " · ".join(f"{source}: {words}" for source, words in reached)


def position(found: Position) -> str:
    time = f", planned {clock(found.time_ms)}" if found.time_ms else ""
    state = "committed" if found.committed else "not committed"
    parts = [style(f"After batch {found.batch} ({state}{time})", "bold")]
    for source in found.sources:
        lines = [f"  source {source.id}   {source.kind}   {uncut(source.offset) or 'none'}"]
        if source.began is not None:
            lines.append(f"      began at {uncut(source.began)}")
        if source.option:
            lines.append(f"      .option({source.option.name!r}, {source.option.value!r})")
        if source.note:
            lines.append(f"      {source.note}")
        parts.append("\n".join(map(one_line, lines)))
    return "\n".join(parts)
