"""The state as text for a person."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from floodmark.checkpoint.sources import render_json
from floodmark.cli.words import count, size, style, table

if TYPE_CHECKING:
    from floodmark.storage.state_compare import StateDifference
    from floodmark.storage.state_diff import StateChange, StateDiff
    from floodmark.storage.state_view import StateStats, StateView

_BAR = 30
_PARTITIONS_SHOWN = 24
_CELL = 48


def title(view: StateView) -> str:
    name = view.operator_name or "operator"
    words = f"{name} {view.operator}, store {view.store}, after batch {view.batch}"
    return style(words, "bold")


def rows(view: StateView, found: Sequence[dict[str, Any]], most: int) -> str:
    shown = found[:most]
    parts = [title(view), _grid(shown) if shown else "  no key"]
    if len(found) > most:
        parts.append("… and more. --limit shows more, --export all of them, --stats counts.")
    others = [store for store in view.stores if store != view.store]
    if others:
        parts.append(f"Other stores: {', '.join(others)}.")
    if view.hint:
        parts.append(view.hint)
    return "\n\n".join(parts)


def _grid(found: Sequence[dict[str, Any]]) -> str:
    keys = list((found[0]["key"] or {}).keys())
    values = list((found[0]["value"] or {}).keys())
    lines = [("partition", *keys, "│", *values)]
    for row in found:
        key, value = row["key"] or {}, row["value"] or {}
        lines.append(
            (
                str(row["partition"]),
                *(_cell(key.get(name)) for name in keys),
                "│",
                *(_cell(value.get(name)) for name in values),
            )
        )
    header, *body = table(lines).splitlines()
    return "\n".join([style(header, "bold"), *body])


def _cell(value: Any) -> str:
    text = value if isinstance(value, str) else render_json(value)
    return text if len(text) <= _CELL else text[: _CELL - 1] + "…"


def stats(view: StateView, found: StateStats) -> str:
    summary = (
        f"{count(found.keys, 'key')} in {count(len(found.partitions), 'partition')}, "
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
        parts.append(f"  and {count(hidden, 'partition')} with fewer keys")
    return "\n\n".join(part for part in parts if part)


def changes(found: StateDiff) -> str:
    total = f"{count(found.added, 'key')} added, {found.removed:,} removed, "
    total += f"{found.changed:,} changed, {found.same:,} the same"
    lines = [(change.change, _cell(change.key), _before_after(change)) for change in found.first]
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


def _before_after(change: StateChange) -> str:
    return f"{_side(change.before)} → {_side(change.after)}"


def _side(values: Sequence[dict[str, Any]]) -> str:
    return " ".join(_cell(value) for value in values) or "–"
