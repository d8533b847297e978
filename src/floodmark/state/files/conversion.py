"""Converts a store's rows between the forms of the two providers."""

from __future__ import annotations

from dataclasses import dataclass

from floodmark.state.files.records import Records
from floodmark.state.rows.encoding import VERSION, encode_keys, with_checksums
from floodmark.state.rows.layout import Layout
from floodmark.state.rows.rowbytes import RowBytes, joined


@dataclass(frozen=True)
class Conversion:
    """Two layouts of the same keys and values, one for each provider."""

    ours: Layout
    theirs: Layout

    def forth(self, records: Records) -> Records:
        return _converted(records, self.ours, self.theirs)

    def back(self, records: Records) -> Records:
        return _converted(records, self.theirs, self.ours)


def _converted(records: Records, source: Layout, goal: Layout) -> Records:
    if source.rocksdb == goal.rocksdb:
        return records
    values = source.checked_values(records)
    keys = _keys(records.keys, source, goal)
    values = joined([VERSION, values]) if goal.rocksdb else values.skip(len(VERSION))
    if goal.rocksdb and goal.row_checksums:
        values = with_checksums(goal, keys, values)
    return Records(keys, values, records.removed)


def _keys(keys: RowBytes, source: Layout, goal: Layout) -> RowBytes:
    if source.encoding.is_plain:
        # The bytes of the row itself are the same on both sides.
        return joined([VERSION, keys]) if goal.rocksdb else keys.skip(len(VERSION))
    return encode_keys(goal, source.decode_keys(keys))
