"""Finds rows that a foreachBatch function deletes when it overwrites a whole table.

In complete mode each batch has every row. In the other modes a batch has only the new or changed
rows, so an overwrite deletes what earlier batches wrote: no crash is needed for that.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from floodmark.engine.code.query import Query
from floodmark.engine.drill.run_spec import SinkNote
from floodmark.engine.drill.sink_rows import rows_of
from floodmark.engine.proof.key_columns import grouping_columns

WIPED = "wiped.jsonl"


class Overwrites:
    def __init__(self, folder: Path, query: Query) -> None:
        self._file = folder / WIPED
        self._complete = query.output_mode.lower() == "complete"
        names = tuple(field["name"] for field in json.loads(query.schema_json)["fields"])
        self._keys = grouping_columns(query.tree, names)

    def __call__(self, spark: Any, note: SinkNote, write: Callable[[], Any]) -> None:
        if self._complete:
            write()
            return
        before = rows_of(spark, note)
        write()
        if before:
            kept = {self._key(row) for row in rows_of(spark, note)}
            with self._file.open("a", encoding="utf-8") as out:
                out.writelines(f"{row}\n" for row in before if self._key(row) not in kept)

    def _key(self, text: str) -> str:
        """Return a row's values of the query's grouping columns, if the table has such columns."""
        row = json.loads(text)
        own = [name for name in self._keys if name in row]
        return json.dumps({name: row[name] for name in own}) if own else text
