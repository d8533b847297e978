"""Shows a state in a notebook: a table of its first rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from floodmark.screen import LINES, table_html

if TYPE_CHECKING:
    from floodmark.statestore.view import StateView


def state_html(view: StateView) -> str:
    """Return an HTML table: a line for each row, a column for each field of key and value."""
    found = view.rows(LINES)
    keys, values = (
        list(dict.fromkeys(name for row in found for name in row[part] or ()))
        for part in ("key", "value")
    )
    rows = [
        (
            row["partition"],
            *((row["key"] or {}).get(name) for name in keys),
            *((row["value"] or {}).get(name) for name in values),
        )
        for row in found
    ]
    about = f"{view.operator_name or 'operator'} {view.operator}, store {view.store}"
    more = "to_pandas() or to_arrow() has them all." if len(rows) == LINES else ""
    head = ("partition", *(f"key.{one}" for one in keys), *(f"value.{one}" for one in values))
    return table_html(f"{about}, after batch {view.batch}", head, rows, more, view.hint)
