"""Breaks sentences at the terminal's width, and never a command, an option or a path.

A break inside a command would end it where it is pasted. Output that is no terminal gets each
sentence in one line, so that a search finds it.
"""

from __future__ import annotations

import os
import re
import sys
import textwrap

_NARROWEST = 40
# From Unicode's private use area: it stands for a space at which no line may be broken.
_GLUE = "\uf8fe"
_COMMAND = re.compile(r"(floodmark|pip|python3?|spark-submit|git|export|unset|kill) ")
_WHOLE = re.compile(
    r"`[^`]*`"  # a command
    r"|'[^']*/[^']*'"  # a path with spaces
    r"|(?<!\S)--[\w-]+ [^\s.,;:]+"  # an option and its value
    r"|(?<=: )[^:]*[^.:?!)\s]$"  # what is to be typed stands last, after a colon, without a stop
)


def prose(words: str, indent: str = "", err: bool = False) -> list[str]:
    """Return a line as the lines that the terminal shows, each with the indent."""
    columns = _columns(err)
    line = f"{indent}{words}"
    if columns is None or len(line) <= columns or _COMMAND.match(words.lstrip()):
        return [line]
    whole = _WHOLE.sub(lambda found: found[0].replace(" ", _GLUE), words)
    inner = indent + " " * (len(words) - len(words.lstrip()))
    broken = textwrap.wrap(
        whole.lstrip(),
        columns,
        initial_indent=inner,
        subsequent_indent=inner,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [one.replace(_GLUE, " ") for one in broken]


def _columns(err: bool) -> int | None:
    """Return the width of the terminal that gets the text; None where it goes elsewhere."""
    stream = sys.stderr if err else sys.stdout
    if stream is None or not stream.isatty():
        return None
    chosen = os.environ.get("COLUMNS", "")
    try:
        found = int(chosen) if chosen.isdecimal() else os.get_terminal_size(stream.fileno()).columns
    except (OSError, ValueError):
        return None
    # A terminal that does not know its width says 0.
    return max(_NARROWEST, found) if found else None
