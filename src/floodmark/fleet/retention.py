"""Estimates when a source's retention removes records that a stream has not read yet."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

_SHORTEST_MS = 60_000
_FAR_MS = 365 * 86_400_000


@dataclass(frozen=True)
class PartSample:
    """The position of one partition of a source at a time."""

    at_ms: int
    source: str
    part: str
    position: int
    end: int | None
    earliest: int | None


@dataclass(frozen=True)
class Overtaking:
    """The partition that retention overtakes first."""

    part: str | None
    ms: int | None
    """The time until then; None: not at the recent speed, or the speeds are unknown."""
    lost: int
    """The number of records that are already gone."""
    words: str
    watched: bool = True
    """False: it was not watched for long enough to know."""


def overtaking(samples: Iterable[PartSample]) -> Overtaking:
    """Compare the speeds of the earliest remaining record and of the stream's position."""
    parts: dict[tuple[str, str], list[PartSample]] = defaultdict(list)
    for sample in samples:
        parts[sample.source, sample.part].append(sample)
    worst: Overtaking | None = None
    watched = 0
    for (_, part), found in parts.items():
        found.sort(key=lambda sample: sample.at_ms)
        answer, enough = _of_part(part, found)
        watched += enough
        if answer is not None and (worst is None or _rank(answer) < _rank(worst)):
            worst = answer
    if worst is not None:
        return worst
    if not watched:
        return Overtaking(None, None, 0, "Not watched for long enough to tell.", watched=False)
    return Overtaking(None, None, 0, "Retention does not come nearer.")


def _rank(found: Overtaking) -> tuple[int, int]:
    return (0, -found.lost) if found.lost else (1, found.ms or 0)


def _of_part(part: str, samples: Sequence[PartSample]) -> tuple[Overtaking | None, bool]:
    last = samples[-1]
    if last.earliest is None:
        return None, False
    if last.earliest > last.position:
        lost = last.earliest - last.position
        records = "1 record" if lost == 1 else f"{lost:,} records"
        words = f"Retention has removed {records} of {part} that the stream has not read."
        return Overtaking(part, 0, lost, words), True
    first = next((one for one in samples if one.earliest is not None), last)
    over = last.at_ms - first.at_ms
    if over < _SHORTEST_MS or first.earliest is None:
        return None, False
    closing = (last.earliest - first.earliest) - (last.position - first.position)
    if closing <= 0 or last.end == last.position:
        return None, True
    ms = (last.position - last.earliest) * over // closing
    if ms > _FAR_MS:
        return None, True
    hours = ms / 3_600_000
    words = f"Retention overtakes {part} in {hours:.1f} hours, at the speed of late."
    return Overtaking(part, ms, 0, words), True
