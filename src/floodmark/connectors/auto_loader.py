"""Databricks' Auto Loader: an entry of its own list of files, in a RocksDB in `sources/`. Pure.

`{"seqNum":234,"sourceVersion":1,"lastBackfillStartTimeMs":…,"lastInputPath":…}`
(CloudFilesSourceOffset).
"""

from __future__ import annotations

from typing import Any

from floodmark.connectors.source import (
    Recognised,
    SourceKind,
    Sureness,
    Traces,
    arrow,
    has_fields,
)

_FORM = frozenset({"seqNum", "sourceVersion"})
_MORE = frozenset({"lastBackfillStartTimeMs", "lastBackfillFinishTimeMs", "lastInputPath"})


class AutoLoader(SourceKind):
    name = "auto-loader"
    formats = frozenset({"cloudfiles"})
    family = "file"
    no_option = "Auto Loader's list of files lies in its own folder of the checkpoint."

    def recognise(self, traces: Traces) -> Recognised | None:
        if has_fields(traces.offset, _FORM, _MORE):
            return Recognised(self.name, Sureness.CERTAIN, "an entry of Auto Loader's list")
        return None

    def explain(self, end: Any, start: Any) -> list[str]:
        return [f"file {arrow(_number(start), _number(end))} of its list"]


def _number(offset: Any) -> str | None:
    return str(offset.get("seqNum")) if isinstance(offset, dict) else None


KIND = AutoLoader()
