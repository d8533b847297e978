"""Formats numbers, times and colours for a person, and prints everything to the terminal.

Everything that a command prints goes through `echo`, which shows control characters by their
numbers. Until then two characters that nobody can guess mark the colours.
"""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Callable, Sequence
from datetime import datetime

import click

from floodmark.visible import one_line, visible

_STYLES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}
_NARROWEST = 40
_PART = re.compile(r" +|[^ /.,_:-]+[/.,_:-]*|[/.,_:-]+")
# These replace the escape character while this process lives: they are from Unicode's
# private use area, so that no checkpoint can write text that comes out as a colour.
_MARK = "".join(chr(0xF0000 + int.from_bytes(os.urandom(2), "big") % 0xFFFE) for _ in range(2))
_COLOURS = re.compile(rf"{_MARK}\[[\d;]*m")


sign_of_life: Callable[[], None] | None = None
"""Ends what `waiting` writes while a command runs."""
# A line that begins so is a command for the runner of GitHub, Azure or TeamCity.
_COMMAND = re.compile(r"^([^\S\n]*)(:|#)(?=\2)", re.MULTILINE)


def echo(text: str, err: bool = False, commands: bool = False) -> None:
    """Print text that may come from a checkpoint; `commands` are lines for a CI's runner."""
    end_waiting()
    click.echo(visible(text) if commands else shown(text), err=err)


def say(text: str) -> None:
    """Print a line about progress to standard error; the sign of life stays below it."""
    clear = "" if sign_of_life is None else "\r\x1b[K"
    click.echo(clear + shown(text), err=True)


def end_waiting() -> None:
    """Remove the sign of life before anything else is printed or drawn."""
    if sign_of_life is not None:
        sign_of_life()


def is_terminal() -> bool:
    """Whether somebody may look at standard error while a command runs."""
    return sys.stderr is not None and sys.stderr.isatty() and os.environ.get("TERM") != "dumb"


def shown(text: str) -> str:
    """Return the text for the terminal: only our own colours, and no line that is a command."""
    return _COMMAND.sub(_numbered, visible(text)).replace(_MARK, "\x1b")


def _numbered(match: re.Match[str]) -> str:
    return f"{match[1]}\\x{ord(match[2]):02x}"


def colour_on() -> bool:
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def style(text: str, *names: str) -> str:
    if not names or not colour_on():
        return text
    return f"{_MARK}[{';'.join(_STYLES[name] for name in names)}m{text}{_MARK}[0m"


def width(widest: int) -> int:
    """Return a paragraph's width: a readable one, or the terminal's."""
    return min(widest, terminal_columns() or widest)


def wrapped(label: str, words: str, widest: int, indent: int | None = None) -> list[str]:
    """Return a paragraph that begins with a label; its later lines are indented."""
    import textwrap

    return textwrap.wrap(
        words,
        width(widest),
        initial_indent=label,
        subsequent_indent=" " * (len(label) if indent is None else indent),
        break_long_words=False,
        break_on_hyphens=False,
    )


def clock(time_ms: int) -> str:
    """Return the time in the reader's zone, with the zone, and with the day if it is not today."""
    try:
        moment = datetime.fromtimestamp(time_ms / 1000).astimezone()
    except (ValueError, OverflowError, OSError):
        return f"{time_ms:,} ms"  # Java's longs go further than calendars
    today = moment.date() == datetime.now().date()
    return moment.strftime("%H:%M:%S %Z" if today else "%Y-%m-%d %H:%M:%S %Z")


def ago(time_ms: int, now_ms: int | None = None) -> str:
    elapsed = (now_ms if now_ms is not None else int(time.time() * 1000)) - time_ms
    return f"{duration(elapsed)} ago" if elapsed >= 0 else f"in {duration(-elapsed)}"


def duration(milliseconds: int) -> str:
    """Return the two largest units: 3 min 22 s."""
    seconds = milliseconds // 1000
    if seconds < 1:
        return f"{milliseconds} ms"
    parts = []
    for unit, size in (("years", 31_557_600), ("days", 86_400), ("h", 3600), ("min", 60), ("s", 1)):
        count, seconds = divmod(seconds, size)
        if count:
            parts.append(f"{count:,} {unit if count != 1 else unit.removesuffix('s') or 's'}")
    return " ".join(parts[:2])


def size(count: int) -> str:
    """Return bytes in the unit that needs the fewest digits."""
    value = float(count)
    for unit in ("bytes", "kB", "MB", "GB"):
        if value < 1000:
            return (
                f"{value:.0f} {unit}" if value >= 10 or unit == "bytes" else f"{value:.1f} {unit}"
            )
        value /= 1000
    return f"{value:.1f} TB"


def count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def table(rows: Sequence[Sequence[str]], indent: str = "  ", gap: str = "   ") -> str:
    """Return columns as wide as their widest cell; the last one is not padded.

    On a terminal that is too narrow, the widest columns are broken into lines: nothing is cut.
    """
    if not rows:
        return ""
    cells = [[one_line(cell) for cell in row] for row in rows]
    widths = [
        max(_width(row[i]) for row in cells if i < len(row)) for i in range(max(map(len, cells)))
    ]
    columns = terminal_columns()
    if columns is not None and len(indent) + sum(widths) + len(gap) * (len(widths) - 1) > columns:
        gap = "  "
        floors = [
            max(len(part) for row in cells if i < len(row) for part in _parts(row[i]))
            for i in range(len(widths))
        ]
        widths = _narrowed(widths, floors, columns - len(indent) - len(gap) * (len(widths) - 1))
        cells = [line for row in cells for line in _broken_row(row, widths)]
        widths = [max(_width(row[i]) for row in cells if i < len(row)) for i in range(len(widths))]
    return "\n".join(
        (indent + gap.join(_padded(cell, widths[i]) for i, cell in enumerate(row))).rstrip()
        for row in cells
    )


def terminal_columns() -> int | None:
    """Return the terminal's width; None where the output goes elsewhere."""
    if not sys.stdout.isatty():
        return None
    from shutil import get_terminal_size

    return max(_NARROWEST, get_terminal_size().columns)


def _narrowed(widths: Sequence[int], floors: Sequence[int], room: int) -> list[int]:
    """Return widths that fit: the widest column shrinks first, down to its longest word."""
    narrowed = list(widths)
    while sum(narrowed) > room:
        wide = [i for i, width in enumerate(narrowed) if width > floors[i]]
        if not wide:
            break
        narrowed[max(wide, key=narrowed.__getitem__)] -= 1
    return narrowed


def _parts(cell: str) -> list[str]:
    """Return the parts that stay whole: words, and names between dots and slashes."""
    return _PART.findall(_COLOURS.sub("", cell)) or [""]


def _broken_row(row: Sequence[str], widths: Sequence[int]) -> list[list[str]]:
    columns = [_broken(cell, width) for cell, width in zip(row, widths, strict=False)]
    height = max(map(len, columns), default=0)
    return [[lines[n] if n < len(lines) else "" for lines in columns] for n in range(height)]


def _broken(cell: str, width: int) -> list[str]:
    """Return a cell's lines: broken at spaces, a long name at its dots and slashes."""
    if _width(cell) <= width:
        return [cell]
    styled = re.fullmatch(rf"({_MARK}\[[\d;]*m)([^{_MARK[0]}]*)({_MARK}\[0m)", cell)
    if styled:
        return [f"{styled[1]}{line}{styled[3]}" for line in _broken(styled[2], width)]
    if _MARK in cell:
        return [cell]
    lines = [""]
    for part in _PART.findall(cell):
        if len(lines[-1]) + len(part.rstrip()) > width and lines[-1].strip():
            lines[-1] = lines[-1].rstrip()
            lines.append("" if part.isspace() else part)
        else:
            lines[-1] += part
    return [lines[0], *(line.lstrip() for line in lines[1:])]


def _width(cell: str) -> int:
    return len(_COLOURS.sub("", cell)) if _MARK in cell else len(cell)


def _padded(cell: str, width: int) -> str:
    return cell + " " * (width - _width(cell))
