"""Reads offsets of Databricks' Auto Loader: an entry of its file list, a RocksDB in `sources/`.
Pure.

`{"seqNum":234,"sourceVersion":1,"lastBackfillStartTimeMs":…,"lastInputPath":…}`
(CloudFilesSourceOffset).
"""

from __future__ import annotations

from typing import Any

from floodmark.connectors.source import FormedKind, arrow


class AutoLoader(FormedKind):
    name = "auto-loader"
    named_parts = ("field",)
    formats = frozenset({"cloudfiles"})
    family = "file"
    fields = frozenset({"seqNum", "sourceVersion"})
    more_fields = frozenset(
        {"lastBackfillStartTimeMs", "lastBackfillFinishTimeMs", "lastInputPath"}
    )
    whole_numbers = fields
    plain_words = True
    told_by = "an entry of Auto Loader's list"
    no_option = "Auto Loader's list of files lies in its own folder of the checkpoint."

    def explain(self, end: Any, start: Any) -> list[str]:
        return [f"file {arrow(_number(start), _number(end))} of the source's list"]


def _number(offset: Any) -> str | None:
    return str(offset.get("seqNum")) if isinstance(offset, dict) else None


KIND = AutoLoader()
