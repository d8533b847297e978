"""Refuses to continue without records that a source no longer has, unless the user accepts it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from floodmark.changes.in_use import MAYBE_RUNNING
from floodmark.errors import WouldLose, WrongUse

OUT_OF_REACH = "out-of-reach"
ANOTHER_QUERY = "another-query"
REPEATS, SKIPS, LOSES = "repeats", "skips", "loses"
NAMES = (OUT_OF_REACH, ANOTHER_QUERY, REPEATS, SKIPS, LOSES, MAYBE_RUNNING)
OTHER_SOURCES = ("source-count-changed", "source-place-changed", "sources-reordered")
"""Rules of `check` whose silent changes `upgrade --app` allows if they are accepted."""


@dataclass(frozen=True)
class Reach:
    """The records after a checkpoint's offsets that a source no longer has."""

    lost: tuple[str, ...]
    """Sentences about records or partitions that are out of reach."""
    notes: tuple[str, ...]
    records: int = 0
    """The number of these records, as far as it can be counted."""
    then: str = "Spark then stops, unless the source has failOnDataLoss=false."
    """Spark's behaviour if the user accepts this."""
    certain: bool = True
    """False: nobody has checked whether the source still has them."""


def accepted(names: Sequence[str], more: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the accepted names; refuse an unknown name, which would accept nothing."""
    known = (*NAMES, *more)
    unknown = [name for name in names if name not in known]
    if unknown:
        raise WrongUse(
            f"--accept {unknown[0]}: there is no such name", do=f"Known: {', '.join(known)}."
        )
    return tuple(sorted(set(names)))


def require_reach(found: Reach, accept: Collection[str], sound: str = "") -> tuple[str, ...]:
    """Return notes for the plan; refuse if records are out of reach and that is not accepted."""
    if not found.lost:
        return (*found.notes, *([sound] if sound else []))
    if OUT_OF_REACH not in accept:
        count = f"{found.records:,} records are" if found.records else "records are"
        what = f"{count} out of reach: the stream would go on without them"
        raise WouldLose(
            what if found.certain else "what is read again may not come: the stream may miss it",
            "\n".join(found.lost),
            f"Accept it by name: --accept {OUT_OF_REACH}. {found.then}",
        )
    return (*(f"OUT OF REACH: {words}." for words in found.lost), *found.notes)
