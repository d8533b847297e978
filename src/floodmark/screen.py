"""Formats a result for Python: at most 80 columns and 25 lines, whatever it contains.

Nothing is lost: the result itself has everything, and the text says how many lines are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any, TypeVar

from floodmark.visible import one_line

COLUMNS, LINES = 80, 25
_CELL = 400
"""The most letters of a cell in a notebook."""
_Item = TypeVar("_Item")


def fitted(lines: Iterable[str], most: int = LINES) -> str:
    """Wrap paragraphs at the screen's width; the last one, which says what to do, stays."""
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
    """Shorten a text to one line of this width, without its middle."""
    text = one_line(text)
    if len(text) <= width:
        return text
    end = (width - 1) // 3
    return f"{text[: width - 1 - end]}…{text[len(text) - end :]}"


def fields_text(self: Any) -> str:
    """Format a dataclass for `__repr__`: one line for each field, long values by their length."""
    lines = [type(self).__name__]
    for field in fields(self):
        if field.repr:
            value = _value(getattr(self, field.name))
            lines.append(short(f"  {field.name}={value}", COLUMNS))
    return fitted(lines)


def line_text(self: Any) -> str:
    """Format a dataclass for `__repr__` in one line, for lists."""
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
    """A tuple whose text shows its first and its last items, one on each line."""

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

    def _repr_html_(self) -> str:
        shown = [*self[:LINES]]
        left_out = f"{len(self) - len(shown)} more of {len(self)}" if len(self) > LINES else ""
        return items_html(shown, left_out) if shown else "<p>nothing</p>"


def table_html(
    title: str, head: Iterable[str], rows: Iterable[Iterable[object]], *after: str
) -> str:
    """Return a title, a table and sentences for a notebook; a checkpoint's text is escaped."""
    parts = [f"<p><b>{_escaped(title)}</b></p>"] if title else []
    names = "".join(f"<th style='text-align:left'>{_escaped(name)}</th>" for name in head)
    body = "".join(
        "<tr>"
        + "".join(f"<td style='text-align:left'>{_escaped(cell)}</td>" for cell in row)
        + "</tr>"
        for row in rows
    )
    if body:
        parts.append(f"<table>{f'<thead><tr>{names}</tr></thead>' if names else ''}{body}</table>")
    return "".join([*parts, *(f"<p>{_escaped(words)}</p>" for words in after if words)])


def fields_html(self: Any) -> str:
    """Format a dataclass for `_repr_html_`: one line for each field, tables for lists."""
    lines, tables = [], []
    for field in fields(self):
        if field.repr:
            value = getattr(self, field.name)
            if isinstance(value, tuple) and value and is_dataclass(value[0]):
                left_out = len(value) - LINES
                more = f"{left_out} more" if left_out > 0 else ""
                tables.append(f"<p>{_escaped(field.name)}</p>{items_html(value[:LINES], more)}")
            else:
                lines.append((field.name.rstrip("_"), _plain(value, field.name)))
    return "".join([table_html(type(self).__name__, (), lines), *tables])


def items_html(items: Iterable[Any], *after: str) -> str:
    """Format items for a notebook: one line for each item, one column for each field."""
    known = list(items)
    if not all(is_dataclass(one) and type(one) is type(known[0]) for one in known):
        return table_html("", (), [(one,) for one in known], *after)
    names = [field.name for field in fields(known[0]) if field.repr]
    rows = ([_plain(getattr(one, name), name) for name in names] for one in known)
    return table_html("", (name.rstrip("_") for name in names), rows, *after)


def _plain(value: Any, name: str = "") -> str:
    if value is None:
        return "–"
    if isinstance(value, Enum):
        return str(value.value)
    if name.endswith("time_ms") and isinstance(value, int):
        return _moment(value)
    if isinstance(value, tuple | list) and len(value) <= 3:
        return ", ".join(_plain(one) for one in value) or "–"
    if is_dataclass(value):
        told = [getattr(value, field.name) for field in fields(value) if field.repr][:3]
        return " ".join(_plain(one) for one in told if one is not None)
    return value if isinstance(value, str) else _value(value)


def _moment(time_ms: int) -> str:
    from datetime import datetime, timezone

    try:
        moment = datetime.fromtimestamp(time_ms / 1000, timezone.utc)
    except (ValueError, OverflowError, OSError):
        return f"{time_ms:,} ms"  # Java's longs go further than calendars
    return moment.strftime("%Y-%m-%d %H:%M:%S UTC")


def _escaped(value: object) -> str:
    from html import escape  # no command line shows HTML

    return escape(one_line(short(str(value), _CELL)))


class ShownByFields:
    """Base of a dataclass (`repr=False`) that is shown with one line for each field."""

    __repr__ = fields_text
    _repr_html_ = fields_html


class ShownInALine:
    """Base of a dataclass (`repr=False`) that is shown in one line, for lists."""

    __repr__ = line_text
    _repr_html_ = fields_html
