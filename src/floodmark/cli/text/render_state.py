"""Prints the state as text for a person."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Any

from floodmark.cli.text import count, size, style, table
from floodmark.connectors.source import render_json
from floodmark.visible import one_line

if TYPE_CHECKING:
    from floodmark.statestore.compare import StateDifference
    from floodmark.statestore.diff import StateDiff
    from floodmark.statestore.dstreams import DStreamState
    from floodmark.statestore.key_counts import StateStats
    from floodmark.statestore.schema import StoreSchema
    from floodmark.statestore.view import StateView

_BAR = 30
_PARTITIONS_SHOWN = 24
_CELL = 48
_BEFORE_DIFFERENCE = 12


def title(view: StateView | DStreamState) -> str:
    name = view.operator_name or "operator"
    words = f"{name} {view.operator}, store {view.store}, after batch {view.batch}"
    return style(words, "bold")


def rows(
    view: StateView | DStreamState, found: Sequence[dict[str, Any]], most: int, whole: bool = False
) -> str:
    """The first rows as a table; `whole` cuts no value."""
    shown = found[:most]
    widest = None if whole else _widest()
    parts = [title(view), _grid(shown, widest) if shown else "  no key"]
    if any(_is_cut(value, widest) for row in shown for value in _values(row)):
        parts.append("Values that end with … are cut. --json shows them whole, and so does --key.")
    if len(found) > most:
        parts.append("… and more. --limit shows more, --export all of them, --stats counts.")
    parts += _others(view)
    if view.hint:
        parts.append(view.hint)
    return "\n\n".join(parts)


def _others(view: StateView | DStreamState) -> list[str]:
    others = [store for store in view.stores if store != view.store]
    return [f"Other stores: {', '.join(others)}."] if others else []


def _values(row: dict[str, Any]) -> list[Any]:
    return [*(row["key"] or {}).values(), *(row["value"] or {}).values()]


def _grid(found: Sequence[dict[str, Any]], widest: int | None) -> str:
    keys = list((found[0]["key"] or {}).keys())
    values = list((found[0]["value"] or {}).keys())
    lines = [("partition", *keys, "│", *values)]
    for row in found:
        key, value = row["key"] or {}, row["value"] or {}
        lines.append(
            (
                str(row["partition"]),
                *(_cut(_plain(key.get(name)), widest) for name in keys),
                "│",
                *(_cut(_plain(value.get(name)), widest) for name in values),
            )
        )
    header, *body = table(lines).splitlines()
    return "\n".join([style(header, "bold"), *body])


def cell(value: Any, times: int = 1) -> str:
    """Shorten a value to half of the terminal, or `times` that."""
    return _cut(_plain(value), times * _widest())


def _widest() -> int:
    return max(_CELL, get_terminal_size((2 * _CELL, 24)).columns // 2)


def _is_cut(value: Any, widest: int | None) -> bool:
    return widest is not None and len(_plain(value)) > widest


def _cut(text: str, widest: int | None) -> str:
    return text if widest is None or len(text) <= widest else text[: widest - 1] + "…"


def _plain(value: Any) -> str:
    if isinstance(value, str):
        return value
    if not isinstance(value, dict) or not value:
        return render_json(value)
    return _window(value) or ", ".join(f"{name} {_part(part)}" for name, part in value.items())


def _part(value: Any) -> str:
    # Among other values, a string with spaces at its ends gets quotes.
    hidden = isinstance(value, str) and (value in ("", "null") or ", " in value)
    return render_json(value) if hidden else _plain(value)


def _window(value: dict[str, Any]) -> str | None:
    """Return Spark's window as a person writes it: 2026-01-01 00:20 – 00:25 UTC."""
    if value.keys() != {"start", "end"}:
        return None
    try:
        start, end = (datetime.fromisoformat(value[name]) for name in ("start", "end"))
    except (TypeError, ValueError):
        return None
    zone = f" {start.tzname()}" if start.tzinfo else ""
    start, end = start.replace(tzinfo=None), end.replace(tzinfo=None)
    exact = (
        "auto" if start.second or end.second or start.microsecond or end.microsecond else "minutes"
    )
    same_day = start.date() == end.date()
    until = end.time().isoformat(exact) if same_day else end.isoformat(" ", exact)
    return f"{start.isoformat(' ', exact)} – {until}{zone}"


def stats(view: StateView | DStreamState, found: StateStats) -> str:
    summary = (
        f"{count(found.keys, view.noun)} in {count(len(found.partitions), 'partition')}, "
        f"{size(found.bytes)} before compression"
    )
    if found.skew is not None:
        summary += f"; the fullest partition has {found.skew:.2f} times the mean"
    fullest = sorted(found.partitions, key=lambda part: -part.keys)[:_PARTITIONS_SHOWN]
    shown = sorted(fullest, key=lambda part: part.partition)
    most = max((part.keys for part in shown), default=0) or 1
    plot = table(
        [
            (
                f"partition {part.partition}",
                f"{part.keys:,}".rjust(len(f"{most:,}")),
                size(part.bytes).rjust(7),
                "█" * max(round(part.keys / most * _BAR), 1 if part.keys else 0),
            )
            for part in shown
        ]
    )
    parts = [title(view), "  " + summary, plot]
    hidden = len(found.partitions) - len(shown)
    if hidden:
        parts.append(f"  and {count(hidden, 'partition')} with fewer {view.noun}s")
    parts += _others(view)
    return "\n\n".join(part for part in parts if part)


def changes(found: StateDiff) -> str:
    total = f"{count(found.added, 'key')} added, {found.removed:,} removed, "
    total += f"{found.changed:,} changed, {found.same:,} the same"
    lines = [
        (change.change, cell(change.key, 2), before_after(change.before, change.after))
        for change in found.first
    ]
    parts = [style(total, "bold"), table(lines)]
    if found.differ > len(found.first):
        parts.append(f"… {found.differ - len(found.first):,} more.")
    return "\n\n".join(part for part in parts if part)


def differences(found: Sequence[StateDifference]) -> str:
    parts = []
    for difference in found:
        name = f"state {difference.operator}, store {difference.store}"
        if difference.keys is None:
            parts.append(f"{name}: cannot be compared: {difference.reason}")
        else:
            parts.append(f"{name}: {changes(difference.keys)}")
    return "\n\n".join(parts)


def before_after(old: Sequence[Mapping[str, Any]], new: Sequence[Mapping[str, Any]]) -> str:
    """Return `old → new`; a dash stands for nothing."""
    before, after = _side(old), _side(new)
    if old and new:
        before, after = _from_difference(before, after, _widest())
    return f"{_cut(before, _widest())} → {_cut(after, _widest())}"


def _side(values: Sequence[Mapping[str, Any]]) -> str:
    return " ".join(_plain(dict(one)) for one in values) or "–"


def _from_difference(before: str, after: str, widest: int) -> tuple[str, str]:
    """Both without the beginning that they share, where the difference would be cut off."""
    pairs = zip(before, after, strict=False)
    same = next((at for at, (one, other) in enumerate(pairs) if one != other), len(before))
    same = min(same, len(after))
    if max(len(before), len(after)) <= widest or same < widest // 2:
        return before, after
    field = before.rfind(", ", 0, same) + len(", ")
    near = same - field <= widest - _BEFORE_DIFFERENCE
    start = field if near else same - _BEFORE_DIFFERENCE
    return f"…{before[start:]}", f"…{after[start:]}"


def schemas(found: Sequence[StoreSchema]) -> str:
    if not found:
        return "The query keeps no state."
    lines: list[str] = []
    shown: int | None = None
    for one in found:
        if one.operator != shown:
            shown = one.operator
            name = f"   {one.name}" if one.name else ""
            lines += ["", style(one_line(f"operator {one.operator}{name}"), "bold")]
        kind = f"   {one.kind}" if one.kind else ""
        lines.append(one_line(f"  {one.store}{kind}"))
        unknown = "no schema was written, or it cannot be read"
        lines.append(one_line(f"    key    {one.key or unknown}"))
        lines.append(one_line(f"    value  {one.value or unknown}"))
    return "\n".join(lines[1:])
