"""Reads Iceberg's offsets: a snapshot of the table, and a position among its files. Pure.

`{"version":1,"snapshot_id":n,"position":n,"scan_all_files":b}` (StreamingOffset). Newer releases
add the snapshot's time and rows. Both numbers are -1 at the beginning of an empty table.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from floodmark.checkpoint.text import long_of, moment, shorten
from floodmark.connectors.source import FormedKind, SourceOffset, StartOption, render_json
from floodmark.errors import MalformedFile

BEFORE_FIRST = -1
_OPTION = "stream-from-timestamp"
_BEGINS = (
    "The stream has read nothing of the table yet. A stream without an option begins with the "
    "oldest snapshot that the table has."
)


class Iceberg(FormedKind):
    name = "iceberg"
    fields = frozenset({"version", "snapshot_id", "position", "scan_all_files"})
    more_fields = frozenset({"snapshot_timestamp_ms", "snapshot_total_rows"})
    version_field = "version"
    may_be_left_out = more_fields
    whole_numbers = frozenset({"snapshot_id", "position"})
    switches = frozenset({"scan_all_files"})
    told_by = "a snapshot and a position in it"
    start_file = "offsets/0"
    start_files = (start_file,)
    asked_with = "--table PATH"
    goes_by_ids = True
    seed_over = _OPTION
    seed_note = (
        "begins exactly there. While the table has nothing newer, a first start with availableNow "
        "fails with a NullPointerException in Iceberg (1.12). Start it when the table has new data "
        "or with another trigger."
    )
    can_be_asked = True
    tells_lag = True
    no_option = (
        f"Iceberg's only starting option is a time ({_OPTION}), which is coarser than this offset. "
        "With the time of the snapshot (committed_at in TABLE.snapshots, in milliseconds), a new "
        "stream reads all files of the snapshot again."
    )

    def has_form(self, offset: Any) -> bool:
        return super().has_form(offset) and all(
            offset[one] >= BEFORE_FIRST for one in self.whole_numbers
        )

    def words(self, offset: Mapping[str, Any]) -> str:
        if offset.get("snapshot_id") == BEFORE_FIRST:
            return "before the first snapshot"
        time_ms = offset.get("snapshot_timestamp_ms", -1)
        made = f" of {moment(time_ms)}" if type(time_ms) is int and time_ms >= 0 else ""
        read = f"snapshot {offset.get('snapshot_id')}{made}, {offset.get('position')} of its files"
        return read + (" (the whole table's)" if offset.get("scan_all_files") else "")

    def reached(self, end: Any) -> str:
        return f"iceberg: {self.words(end)}"

    def starting_option(self, source: SourceOffset) -> tuple[StartOption | None, str | None]:
        snapshot, position = parse_iceberg_offset(source.offset)
        time_ms = source.offset.get("snapshot_timestamp_ms")
        is_time = type(time_ms) is int and 0 <= time_ms < 2**63
        if snapshot == BEFORE_FIRST or not is_time:
            return None, _BEGINS if snapshot == BEFORE_FIRST else self.no_option
        note = (
            f"A time is coarser than this offset: with it a stream reads snapshot {snapshot} from "
            f"its first file, though {position} of its files are read."
        )
        return StartOption(_OPTION, str(time_ms), str(time_ms)), note

    def seed(self, source: SourceOffset) -> bytes | None:
        return None if source.text is None else source.text.encode()

    def carried_start(self, source: SourceOffset) -> bytes | None:
        snapshot, _ = parse_iceberg_offset(source.offset)
        if snapshot == BEFORE_FIRST:
            return None
        # Iceberg fails with a NullPointerException if the table ends where the stream began.
        # A table never ends before the first file of a snapshot.
        return render_json({**source.offset, "position": BEFORE_FIRST}).encode()


def parse_iceberg_offset(offset: Any) -> tuple[int, int]:
    """Return the snapshot, and how many of its files are read."""
    if not KIND.has_form(offset):
        raise MalformedFile(f"not an Iceberg offset: {shorten(repr(offset))}")
    return (
        long_of(offset, "snapshot_id", "the Iceberg offset"),
        long_of(offset, "position", "the Iceberg offset"),
    )


KIND = Iceberg()
