"""Recognises a key that was meant to be checkpointLocation."""

from __future__ import annotations

from floodmark.checkpoint.conf_keys import CHECKPOINT_OPTION

_WRONG = frozenset(
    {
        "checkpoint",
        "checkpoints",
        "checkpointdir",
        "checkpointdirectory",
        "checkpointfolder",
        "checkpointloc",
        "checkpointpath",
        "checkpointurl",
        "locationcheckpoint",
    }
)
_FEW = 3


def is_misspelt(key: str) -> bool:
    """Whether a key is a misspelt checkpointLocation: `checkPoint`, `checkpoint_location`…"""
    plain = "".join(letter for letter in key.lower() if letter.isalnum())
    return key.lower() != CHECKPOINT_OPTION and (plain in _WRONG or _distance(plain) <= _FEW)


def _distance(word: str) -> int:
    """Return how many letters must be changed, added or removed to correct the word."""
    if abs(len(word) - len(CHECKPOINT_OPTION)) > _FEW:
        return _FEW + 1
    before = list(range(len(CHECKPOINT_OPTION) + 1))
    for at, letter in enumerate(word, 1):
        row = [at]
        for other, right in enumerate(CHECKPOINT_OPTION, 1):
            row.append(min(row[-1] + 1, before[other] + 1, before[other - 1] + (letter != right)))
        before = row
    return before[-1]
