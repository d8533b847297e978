"""Decides which snapshots of a stream's Iceberg table are gone: one answer for all verbs. Pure."""

from __future__ import annotations

from enum import Enum

from floodmark.checkpoint.live_answers import Shortfall, SnapshotLine
from floodmark.connectors.iceberg.offset import BEFORE_FIRST


class IcebergTrouble(str, Enum):
    EXPIRED = "expired"
    REPLACED = "replaced"


def shortfall(snapshot: int, table: SnapshotLine) -> Shortfall[IcebergTrouble] | None:
    """Return what the table lacks of what a stream reads next, if it stands in a snapshot."""
    expired, replaced = IcebergTrouble.EXPIRED, IcebergTrouble.REPLACED
    if snapshot == BEFORE_FIRST:
        if table.is_whole:
            return None
        return Shortfall(
            expired,
            f"the stream has read nothing of {table.place} yet, and the snapshots before "
            f"{table.line[-1]} have expired: Spark begins there, and never reads what they added",
        )
    if snapshot in table.line:
        return None
    if not table.line:
        words = f"{table.place} has no current snapshot, but the stream stands in {snapshot}"
        return Shortfall(replaced, f"{words}: the table was created again or rolled back")
    stands = f"the stream stands in snapshot {snapshot}"
    if not table.is_whole:
        if snapshot in table.kept:
            words = (
                f"{stands}, but no snapshot follows it: later ones of {table.place} have expired"
            )
        else:
            words = f"{stands}, but {table.place} no longer has it: it has expired"
        return Shortfall(expired, words)
    if snapshot in table.kept:
        return Shortfall(
            replaced,
            f"{stands}, which is no ancestor of the current snapshot {table.line[0]} of "
            f"{table.place}: the table was replaced or rolled back",
        )
    return Shortfall(
        replaced,
        f"{stands}, but {table.place} does not have it, though it has all its snapshots since the "
        f"first, {table.line[-1]}: it is another table, was dropped and created again, or was "
        "rolled back",
    )
