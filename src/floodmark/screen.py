"""What Python shows of a result: at most 80 columns and 25 lines, whatever it holds.

Nothing is lost by it: the result has all of it, and says how many lines are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from enum import Enum
from typing import Any, TypeVar

from floodmark.visible import one_line

COLUMNS, LINES = 80, 25
_Item = TypeVar("_Item")


def fitted(lines: Iterable[str], most: int = LINES) -> str:
    """Paragraphs broken at the screen's width; the last one, which says what to do, stays."""
    wrapped = [_wrapped(line) for line in lines]
    shown = [part for parts in wrapped for part in parts]
    if len(shown) <= most:
        return "\n".join(shown)
    last = wrapped[-1][: most // 2]
    room = most - 1 - len(last)
    left_out = len(shown) - room - len(last)
    return "\n".join([*shown[:room], f"… {left_out} more lines", *last])


def _wrapped(line: str) -> list[str]:
    import textwrap  # most commands show no plan

    text = one_line(line)
    indent = text[: len(text) - len(text.lstrip())] + "  "
    return textwrap.wrap(text, COLUMNS, subsequent_indent=indent) or [""]


def short(text: str, width: int) -> str:
    """One line of at most this width; the middle is left out."""
    text = one_line(text)
    if len(text) <= width:
        return text
    end = (width - 1) // 3
    return f"{text[: width - 1 - end]}…{text[len(text) - end :]}"


def fields_text(self: Any) -> str:
    """The `__repr__` of a dataclass: a line a field, long values by their number of items."""
    lines = [type(self).__name__]
    for field in fields(self):
        if field.repr:
            value = _value(getattr(self, field.name))
            lines.append(short(f"  {field.name}={value}", COLUMNS))
    return fitted(lines)


def line_text(self: Any) -> str:
    """The `__repr__` of a dataclass that stands among many: one line."""
    said = (f"{one.name}={_value(getattr(self, one.name))}" for one in fields(self) if one.repr)
    return short(f"{type(self).__name__}({', '.join(said)})", COLUMNS)


def _value(value: Any) -> str:
    if isinstance(value, Enum):
        return repr(value.value)
    if isinstance(value, Mapping | tuple | list | frozenset) and len(value) > 3:
        kind = "entries" if isinstance(value, Mapping) else "items"
        return f"<{len(value)} {kind}>"
    return repr(value)


class Shown(tuple[_Item, ...]):
    """A tuple that shows its first and its last items, a line each."""

    __slots__ = ()

    def __repr__(self) -> str:
        lines = [short(repr(one), COLUMNS) for one in self]
        if not lines:
            return "()"
        if len(lines) <= LINES:
            return "\n".join(lines)
        half = (LINES - 1) // 2
        left_out = f"… {len(lines) - 2 * half} more of {len(lines)}"
        return "\n".join([*lines[:half], left_out, *lines[-half:]])
