"""Reads `migrate --start SOURCE=WHERE`: where sources of the new code begin, or go on."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from floodmark.engine.code.drawing import Drawing
from floodmark.errors import CannotRead, WrongUse
from floodmark.rules.restarts.source_matching import HeldSource

GOES_ON = "source:"


@dataclass(frozen=True)
class SourceStarts:
    """The positions from --start, by source of the new code."""

    given: Mapping[int, str]

    @property
    def goes_on(self) -> dict[int, int]:
        """Return the source of the checkpoint for each source of the new code that continues it."""
        return {
            at: int(text.removeprefix(GOES_ON))
            for at, text in self.given.items()
            if text.startswith(GOES_ON)
        }


def read_starts(pairs: Sequence[str], found: Drawing, held: Sequence[HeldSource]) -> SourceStarts:
    given: dict[int, str] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not name or not equals or not value:
            raise WrongUse(f"--start {pair}: it is not SOURCE=WHERE", do=_SPELLED)
        at = _source_named(name, found)
        if at in given:
            raise WrongUse(f"--start {name}: source {at} is given twice", do="Give it once.")
        given[at] = _goes_on(pair, value, held) if value.startswith(GOES_ON) else _content(value)
    return SourceStarts(given)


_SPELLED = (
    "Write --start SOURCE=WHERE: a source's number, name, topic or path; and earliest, latest, an "
    "offset as JSON, a file that holds one, or source:N to go on where source N of CP stood."
)


def _source_named(name: str, found: Drawing) -> int:
    sources = found.outline.sources
    if name.isdecimal() and int(name) < len(sources):
        return int(name)
    fitting = [at for at, one in enumerate(sources) if name in (one.name, one.place)]
    if len(fitting) == 1:
        return fitting[0]
    there = ", ".join(
        f"{at} ({one.kind} {one.name or one.place or ''})" for at, one in enumerate(sources)
    )
    what = "two sources have this name" if fitting else "the new code has no such source"
    raise WrongUse(f"--start {name}: {what}", f"Its sources are {there}.", _SPELLED)


def _goes_on(pair: str, value: str, held: Sequence[HeldSource]) -> str:
    wanted = value.removeprefix(GOES_ON)
    for old, one in enumerate(held):
        if one.position.id == wanted:
            return f"{GOES_ON}{old}"
    known = ", ".join(f"{one.position.id} ({one.words})" for one in held)
    raise WrongUse(
        f"--start {pair}: the checkpoint has no source {wanted}", f"It has {known}.", _SPELLED
    )


def _content(value: str) -> str:
    """Return the text of the named file; a value that is not a file's name stays."""
    if value in ("earliest", "latest") or value.lstrip().startswith(("{", "[", '"')):
        return value
    try:
        json.loads(value)
    except ValueError:
        pass
    else:
        return value
    try:
        return Path(value).read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise CannotRead(
            f"--start: {value} is neither earliest nor latest, nor JSON, nor a file: {error}",
            do=_SPELLED,
        ) from None
