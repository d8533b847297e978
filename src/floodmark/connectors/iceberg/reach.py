"""Which snapshots of a stream's Iceberg table are gone: the one answer for all verbs. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from floodmark.checkpoint.live_answers import SnapshotLine
from floodmark.connectors.iceberg.offset import BEFORE_FIRST


class IcebergTrouble(str, Enum):
    EXPIRED = "expired"
    REPLACED = "replaced"


@dataclass(frozen=True)
class IcebergShortfall:
    trouble: IcebergTrouble
    words: str


def shortfall(snapshot: int, table: SnapshotLine) -> IcebergShortfall | None:
    """What the table lacks of what a stream that stands in a snapshot reads next."""
    expired, replaced = IcebergTrouble.EXPIRED, IcebergTrouble.REPLACED
    if snapshot == BEFORE_FIRST:
        if table.is_whole:
            return None
        return IcebergShortfall(
            expired,
            f"the stream has read nothing of {table.place} yet, and older snapshots than "
            f"{table.line[-1]} are expired: Spark begins there, and never reads what they added",
        )
    if snapshot in table.line:
        return None
    if not table.line:
        words = f"{table.place} has no current snapshot, and the stream stands in {snapshot}"
        return IcebergShortfall(replaced, f"{words}: the table was made anew or rolled back")
    stands = f"the stream stands in snapshot {snapshot}"
    if not table.is_whole:
        if snapshot in table.kept:
            words = f"{stands}, and later ones of {table.place} are expired: none follows it"
        else:
            words = f"{stands}, and {table.place} no longer has it: it was expired"
        return IcebergShortfall(expired, words)
    if snapshot in table.kept:
        return IcebergShortfall(
            replaced,
            f"{stands}, which does not lead to the current one of {table.place}, {table.line[0]}: "
            "the table was replaced or rolled back",
        )
    return IcebergShortfall(
        replaced,
        f"{table.place} has all its snapshots since the first, {table.line[-1]}, and none is "
        f"{snapshot}, in which the stream stands: it is another table, was dropped and made anew, "
        "or was rolled back",
    )
