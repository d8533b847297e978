"""Decides when two different expressions mean the same to a state. Pure.

A wider type holds the same values, and the state's schema shows it. A column may have a new name,
if the user says so.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace

from floodmark.checkpoint.plan.expressions import COMMUTATIVE
from floodmark.checkpoint.plan.tree import COLUMN, Expression

_WHOLE = ("byte", "short", "integer", "long")
_WIDER = {
    *((a, b) for at, a in enumerate(_WHOLE) for b in _WHOLE[at:]),
    ("float", "double"),
    *((a, "double") for a in ("byte", "short", "integer", "float")),
}
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")


def meanings(one: Expression, new_names: Mapping[str, str]) -> frozenset[Expression]:
    """Return the forms of an expression: with the old column names and with the new ones."""
    plain = _bare(one, {})
    return frozenset({plain, _bare(one, new_names)}) if new_names else frozenset({plain})


def _bare(one: Expression, names: Mapping[str, str]) -> Expression:
    def change(found: Expression) -> Expression:
        if found.name in COMMUTATIVE:
            return replace(found, children=tuple(sorted(found.children, key=lambda c: c.digest)))
        return _named(found, names) if found.name == COLUMN else found

    return one.mapped(lambda found: found.children[0] if _widens(found) else found).mapped(change)


def _named(column: Expression, names: Mapping[str, str]) -> Expression:
    name = str(json.loads(column.field("name") or '""'))
    now = names.get(name, name)
    # Its type shows in the state's schema, and is compared there.
    fields = tuple(
        (k, json.dumps(now) if k == "name" else v) for k, v in column.fields if k != "type"
    )
    return replace(column, fields=fields, label=now)


def _widens(one: Expression) -> bool:
    """Whether the expression is a cast that loses nothing, of a column whose type is known."""
    if one.name != "Cast" or len(one.children) != 1 or one.children[0].name != COLUMN:
        return False
    before = str(json.loads(one.children[0].field("type") or "null"))
    after = str(json.loads(one.field("dataType") or "null"))
    if (before, after) in _WIDER:
        return True
    old, new = _DECIMAL.fullmatch(before), _DECIMAL.fullmatch(after)
    if old is None or new is None:
        return False
    scale, other = int(old[2]), int(new[2])
    return other >= scale and int(new[1]) - other >= int(old[1]) - scale
