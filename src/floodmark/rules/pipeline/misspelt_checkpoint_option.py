"""An option that is nearly checkpointLocation."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.rules.code.facts import Code
from floodmark.rules.finding import Finding, Rule, Severity

RULE = Rule(
    "FM201",
    "misspelt-checkpoint-option",
    Severity.ERROR,
    finds="writeStream.option() with a key close to checkpointLocation.",
    matters="Spark ignores keys it does not know, so the query does not resume from the directory "
    "you named.",
    restart="It begins anew, or fails for want of a checkpoint.",
    instead='.option("checkpointLocation", path)',
)
_RIGHT = "checkpointlocation"
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


def check(code: Code) -> Iterator[Finding]:
    for stream in code.streams:
        for option in stream.options:
            plain = "".join(letter for letter in option.key.lower() if letter.isalnum())
            if option.key.lower() != _RIGHT and (plain in _WRONG or _distance(plain) <= _FEW):
                yield RULE.finding(
                    code.path,
                    f"{option.key!r} is not an option of Spark; it is checkpointLocation.",
                    line=option.line,
                )


def _distance(word: str) -> int:
    """How many letters have to be changed, added or left out to make it right."""
    if abs(len(word) - len(_RIGHT)) > _FEW:
        return _FEW + 1
    before = list(range(len(_RIGHT) + 1))
    for at, letter in enumerate(word, 1):
        row = [at]
        for other, right in enumerate(_RIGHT, 1):
            row.append(min(row[-1] + 1, before[other] + 1, before[other - 1] + (letter != right)))
        before = row
    return before[-1]
