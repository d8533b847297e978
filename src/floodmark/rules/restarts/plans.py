"""What two plans mean alike or otherwise: keys, aggregates, filters, by their SQL."""

from __future__ import annotations

import re
from collections.abc import Iterable

from floodmark.checkpoint.outline import PlanNode

_WORD = re.compile(r"`([^`]+)`|([A-Za-z_][A-Za-z0-9_]*)")
_STATEFUL = (
    "Aggregate",
    "Deduplicate",
    "DeduplicateWithinWatermark",
    "Join",
    "FlatMapGroupsWithState",
    "FlatMapGroupsInPandasWithState",
    "TransformWithState",
    "TransformWithStateInPandas",
    "TransformWithStateInPySpark",
)


def expression(column: str) -> str:
    """`sum(a)` of `sum(a) AS total`."""
    return column.rpartition(" AS ")[0] or column


def alias(column: str) -> str:
    return column.rpartition(" AS ")[2].strip("`")


def stateful(nodes: Iterable[PlanNode]) -> list[PlanNode]:
    return [
        one
        for one in nodes
        if one.kind in _STATEFUL
        and one.streaming
        and (one.kind != "Join" or one.details.get("streams"))
    ]


def keys_of(node: PlanNode) -> list[str]:
    for name in ("grouping", "columns"):
        if name in node.details:
            return [str(one) for one in node.details[name]]
    return []


def definitions(nodes: Iterable[PlanNode]) -> dict[str, tuple[str, ...]]:
    """Column → how projections make it, nearest the sink first; columns passed on are left out."""
    found: dict[str, tuple[str, ...]] = {}
    for node in nodes:
        if node.kind != "Project":
            continue
        for column in node.details.get("columns", ()):
            text, name = expression(column), alias(column)
            if text.strip("`") != name:
                found[name] = (*found.get(name, ()), text)
    return found


def names_in(text: str) -> set[str]:
    return {quoted or plain for quoted, plain in _WORD.findall(text)}


def redefined(
    before: dict[str, tuple[str, ...]], after: dict[str, tuple[str, ...]], wanted: Iterable[str]
) -> list[str]:
    """Of the wanted columns, those that are made in another way."""
    asked = set(wanted)
    # A column made of another that is made in another way is another, too.
    while True:
        made = {
            name
            for column in asked
            for text in (*before.get(column, ()), *after.get(column, ()))
            for name in names_in(text)
        }
        if made <= asked:
            break
        asked |= made
    return sorted(name for name in asked if before.get(name, ()) != after.get(name, ()))


def below(nodes: tuple[PlanNode, ...], node: PlanNode) -> tuple[PlanNode, ...]:
    """What the node's rows come from, and what stands beside it."""
    return nodes[nodes.index(node) + 1 :]


def window_length(nodes: tuple[PlanNode, ...]) -> int | None:
    """How many microseconds the plan's time windows last; None where it has none, or several."""
    text = " ".join(str(node.details) for node in nodes if node.kind in ("Project", "Expand"))
    # A window ends where it begins (… - its start), and its length later.
    found = {int(length) for length in re.findall(r"- \d+L?\) \+ (\d+)", text)}
    return found.pop() if len(found) == 1 and "window" in text else None
