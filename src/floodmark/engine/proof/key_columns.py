"""Finds the key columns of a query's output: those it groups or deduplicates by. Pure."""

from __future__ import annotations

import re

from floodmark.checkpoint.plan.tree import OUTPUT, PlanTree

_KEY = re.compile(r".* key \d+")


def grouping_columns(tree: PlanTree, names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the output columns of the last grouping or deduplication."""
    if len(tree.columns) != len(names):
        return ()
    return tuple(
        name
        for name, column in zip(names, tree.columns, strict=True)
        if column.name == OUTPUT and _KEY.fullmatch(column.field("of") or "")
    )
