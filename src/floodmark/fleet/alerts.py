"""Decides when somebody must be alerted: a stream stalls, falls behind, or has an error."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from floodmark.fleet.card import FleetCard
from floodmark.fleet.pulse import StreamHealth

STALLED, BEHIND, ERROR = "stalled", "behind", "error-finding"
_GROWING_SAMPLES = 4
_TIMES = 2


@dataclass(frozen=True)
class Alert:
    event: str
    """`stalled`, `behind` or `error-finding`; with `-over` when it has ended."""
    id: str
    name: str
    path: str
    words: str
    at_ms: int


def troubles(card: FleetCard, lags: Sequence[int]) -> dict[str, str]:
    """Return each event's sentence; `lags`: records behind in the last samples, oldest first."""
    found = {}
    if card.health is StreamHealth.STALLED:
        found[STALLED] = card.words
    if falls_behind(lags):
        found[BEHIND] = f"{lags[-1]:,} records behind, and more each time that it was asked."
    if card.findings is not None and card.findings.error:
        found[ERROR] = card.findings.first or "The checkpoint has an error."
    return found


def falls_behind(lags: Sequence[int]) -> bool:
    """Whether the lag grew in each of the last samples, and at least doubled over them."""
    recent = lags[-_GROWING_SAMPLES:]
    grows = all(after > before for before, after in pairwise(recent))
    return len(recent) == _GROWING_SAMPLES and grows and recent[-1] >= _TIMES * max(recent[0], 1)


def changes(before: dict[str, str], now: dict[str, str]) -> list[tuple[str, str]]:
    """Return (event, words) for each event that began or ended."""
    begun = [(event, words) for event, words in now.items() if event not in before]
    over = [(f"{event}-over", "It is over.") for event in before if event not in now]
    return begun + over
