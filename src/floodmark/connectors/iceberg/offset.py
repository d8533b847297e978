"""Iceberg: a snapshot of the table, and a position among its files. Pure.

`{"version":1,"snapshot_id":n,"position":n,"scan_all_files":b}` (StreamingOffset), in newer releases
with the snapshot's time and rows; -1 and -1 at the beginning of an empty table.
"""

from __future__ import annotations

from typing import Any

from floodmark.checkpoint.text import moment
from floodmark.connectors.source import (
    Recognised,
    SourceKind,
    Sureness,
    Traces,
    arrow,
    has_fields,
)

_FORM = frozenset({"version", "snapshot_id", "position", "scan_all_files"})
_MORE = frozenset({"snapshot_timestamp_ms", "snapshot_total_rows"})


class Iceberg(SourceKind):
    name = "iceberg"
    start_files = ("offsets/0",)
    tells_lag = True
    no_option = (
        "Iceberg's only starting option is a time (stream-from-timestamp), which is coarser than "
        "this offset."
    )

    def recognise(self, traces: Traces) -> Recognised | None:
        if has_fields(traces.offset, _FORM, _MORE):
            return Recognised(self.name, Sureness.CERTAIN, "a snapshot and a position in it")
        return None

    def explain(self, end: Any, start: Any) -> list[str]:
        return [arrow(_words(start), _words(end))]


def _words(offset: Any) -> str | None:
    if not isinstance(offset, dict):
        return None
    if offset.get("snapshot_id") == -1:
        return "before the first snapshot"
    time_ms = offset.get("snapshot_timestamp_ms", -1)
    made = f" of {moment(time_ms)}" if type(time_ms) is int and time_ms >= 0 else ""
    read = f"snapshot {offset.get('snapshot_id')}{made}, {offset.get('position')} of its files"
    return read + (" (the whole table's)" if offset.get("scan_all_files") else "")


KIND = Iceberg()
