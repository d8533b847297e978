"""Decides which part of a stream's Delta table is gone: one answer for all verbs. Pure."""

from __future__ import annotations

from enum import Enum

from floodmark.checkpoint.live_answers import Shortfall, TableLog
from floodmark.connectors.delta.offset import DeltaOffset


class DeltaTrouble(str, Enum):
    NO_TABLE = "no-table"
    ANOTHER_TABLE = "another-table"
    VERSION_GONE = "version-gone"
    VERSION_AHEAD = "version-ahead"
    FILES_GONE = "files-gone"


def shortfall(offset: DeltaOffset, table: TableLog) -> Shortfall[DeltaTrouble] | None:
    """Return what the table lacks of what the stream reads next."""
    needed = offset.reservoir_version
    if table.last < 0:
        return Shortfall(
            DeltaTrouble.NO_TABLE, f"{table.place} is not a Delta table: it has no _delta_log"
        )
    if table.id is not None and table.id != offset.reservoir_id:
        return Shortfall(
            DeltaTrouble.ANOTHER_TABLE,
            f"{table.place} is another table ({table.id}): the stream has read "
            f"{offset.reservoir_id}",
        )
    if needed < table.first:
        # An unfinished snapshot needs its version rebuilt; a later checkpoint file cannot do that.
        return Shortfall(
            DeltaTrouble.VERSION_GONE,
            f"the stream goes on in version {needed}, but the log of {table.place} begins at "
            f"{table.first}",
        )
    if needed > table.last + 1:
        return Shortfall(
            DeltaTrouble.VERSION_AHEAD,
            f"the stream goes on in version {needed}, but {table.place} ends at {table.last}",
        )
    if table.gone:
        many = f"{len(table.gone):,} data files" if len(table.gone) > 1 else "1 data file"
        are = "are gone, the first" if len(table.gone) > 1 else "is gone:"
        return Shortfall(
            DeltaTrouble.FILES_GONE,
            f"{table.place}: {many} that the stream reads next {are} {table.gone[0]}",
        )
    return None
