"""Records that a source cannot give any more: said with numbers, and accepted by name."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from floodmark.changes.in_use import MAYBE_RUNNING
from floodmark.errors import WouldLose, WrongUse

OUT_OF_REACH = "out-of-reach"
ANOTHER_QUERY = "another-query"
REPEATS, SKIPS, LOSES = "repeats", "skips", "loses"
NAMES = (OUT_OF_REACH, ANOTHER_QUERY, REPEATS, SKIPS, LOSES, MAYBE_RUNNING)


@dataclass(frozen=True)
class Reach:
    """How a checkpoint's offsets stand to what the source has."""

    lost: tuple[str, ...]
    """In words: records or partitions that are out of reach."""
    notes: tuple[str, ...]
    records: int = 0
    """How many records that is, as far as it can be counted."""
    then: str = "Spark then stops, unless the source has failOnDataLoss=false."
    """What Spark does where it is accepted."""


def accepted(names: Sequence[str]) -> tuple[str, ...]:
    """What the user accepts; an unknown name would accept nothing, and look as if it did."""
    unknown = [name for name in names if name not in NAMES]
    if unknown:
        raise WrongUse(
            f"--accept {unknown[0]}: there is no such name", do=f"Known: {', '.join(NAMES)}."
        )
    return tuple(sorted(set(names)))


def require_reach(found: Reach, accept: Collection[str], sound: str = "") -> tuple[str, ...]:
    """Notes for the plan; refuses where records are out of reach and that is not accepted."""
    if not found.lost:
        return (*found.notes, *([sound] if sound else []))
    if OUT_OF_REACH not in accept:
        count = f"{found.records:,} records are" if found.records else "records are"
        raise WouldLose(
            f"{count} out of reach: the stream would go on without them",
            "\n".join(found.lost),
            f"Accept it by name: --accept {OUT_OF_REACH}. {found.then}",
        )
    return (*(f"OUT OF REACH: {words}." for words in found.lost), *found.notes)
