"""Compares one key in two states: its rows before and after."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from floodmark.errors import NoAnswer
from floodmark.statestore.diff import StateChange, StateDiff
from floodmark.statestore.view import StateView

_KINDS = ("added", "removed", "changed")


def diff_key(before: StateView, after: StateView, key: Mapping[str, Any]) -> StateDiff | None:
    """Compare the key, or all keys with these fields; None if the store's keys have other
    fields.
    """
    names = {field.name for field in after.arrow_schema.field("key").type}
    own = {name: value for name, value in key.items() if name in names}
    if not own:
        return None
    old, new = _by_key(before, own), _by_key(after, own)
    changes, same = [], 0
    for name in {**old, **new}:
        gone, come = old.get(name, []), new.get(name, [])
        values = tuple(row["value"] for row in gone), tuple(row["value"] for row in come)
        if values[0] == values[1]:
            same += 1
            continue
        change = "changed" if gone and come else "removed" if gone else "added"
        changes.append(StateChange(change, (gone or come)[0]["key"], *values))
    count = {kind: sum(one.change == kind for one in changes) for kind in _KINDS}
    return StateDiff(count["added"], count["removed"], count["changed"], same, tuple(changes))


def _by_key(view: StateView, key: Mapping[str, Any]) -> dict[str, list[dict[str, Any]]]:
    if not view.partitions:
        return {}
    try:
        rows = view.lookup(key)
    except NoAnswer:
        return {}
    found: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        found.setdefault(json.dumps(row["key"], sort_keys=True), []).append(row)
    return found
