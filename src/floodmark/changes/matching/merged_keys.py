"""Decides how rows are merged whose keys become one: by `--merge`, or by a function. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from floodmark.changes.matching.fields import ColumnNotes
from floodmark.changes.matching.shapes import OperatorShape, StoreShape
from floodmark.checkpoint.operator_kinds import AGGREGATION, DEDUP, DEDUP_WITHIN
from floodmark.errors import NotCarried, WrongUse
from floodmark.state.rows.types import distinct

SEEN = (DEDUP, DEDUP_WITHIN)
MERGES = ("sum", "min", "max", "any")


def merge_rules(
    new: OperatorShape,
    after: StoreShape,
    gone: tuple[str, ...],
    given: Mapping[str, str] | None,
    ledger: ColumnNotes,
) -> Mapping[str, str] | None:
    """Return the rule of each column where `gone` has left the key; `given`: those of `--merge`."""
    if not gone:
        return None
    columns = ", ".join(gone)
    if new.kind in SEEN:
        ledger.note(
            f"{columns} is no part of the key any more: of keys that become one, the "
            "first seen stays"
        )
        return dict.fromkeys(distinct(after.value).names, "min")
    if new.kind != AGGREGATION:
        raise NotCarried(
            f"{new.words}: the key has no {columns} any more",
            f"Rows of a {new.kind} whose keys become equal cannot be merged: their input is no "
            f"longer "
            "there.",
            "Give the rows yourself with --with MIGRATION.py, or begin with an empty state: "
            "`floodmark upgrade CP NEW --without-state`.",
        )
    merge = dict(given or {})
    names = distinct(after.value).names
    missing = [name for name in names if name not in merge and name not in after.key.names]
    if missing:
        raise NotCarried(
            f"{new.words}: the key has no {columns} any more, and nothing says how "
            f"{', '.join(missing)} of keys that become one are merged",
            "The names of the columns do not say how to combine their values.",
            f"Give a rule for each: {' '.join(f'--merge {name}=sum' for name in missing)} "
            f"(one of {', '.join(MERGES)}), or give a function: merge(key, values) in "
            "--with MIGRATION.py.",
        )
    for name, how in merge.items():
        if how not in MERGES:
            raise WrongUse(
                f"--merge {name}={how}: the rules are {', '.join(MERGES)}",
                do="For any other rule, write a function: merge(key, values) in --with "
                "MIGRATION.py.",
            )
        if name not in names:
            raise WrongUse(
                f"--merge {name}: the new state has {', '.join(names)}",
                do="Name one of these.",
            )
    ledger.note(f"{columns} is no part of the key any more: keys that become one are merged")
    return {name: merge.get(name, "any") for name in names}
