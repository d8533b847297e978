"""One version of a store as the changes since the version before: a delta, or a changelog.

What an uncommitted batch has left is written so, and not as a snapshot: where the batch is
run again, Spark replaces such a file, and would go on preferring a snapshot beside it.
"""

from __future__ import annotations

from collections.abc import Iterable

from floodmark.checkpoint.layout import FileInfo
from floodmark.state.framing import compress
from floodmark.state.records import Records, render_records
from floodmark.state.rocksdb import DELETE, PUT, Change
from floodmark.state.rocksdb_write import render_changelog
from floodmark.state.tally import Tally, tally
from floodmark.storage.files import Files
from floodmark.storage.state_write import HDFS, StoreFormat, WrittenStore


def write_change(
    files: Files,
    folder: str,
    version: int,
    before: Iterable[Records],
    after: Iterable[Records],
    style: StoreFormat,
) -> WrittenStore:
    """All rows of the version, and the removal of keys that only the one before it had."""
    rows: dict[bytes, bytes | None] = {}
    counted = Tally()
    for records in after:
        counted += tally(records)
        rows.update(zip(records.keys.to_list(), records.values.to_list(), strict=True))
    for records in before:
        for key in records.keys.to_list():
            rows.setdefault(key, None)
    path = f"{folder}/{version}.{'delta' if style.provider == HDFS else 'changelog'}"
    data = _rendered(rows, style)
    files.write(path, data)
    return WrittenStore((FileInfo(path, len(data)),), counted)


def _rendered(rows: dict[bytes, bytes | None], style: StoreFormat) -> bytes:
    if not style.families:
        return compress(render_records(list(rows), list(rows.values())), style.codec)
    changes = [
        Change(DELETE, key, b"") if value is None else Change(PUT, key, value)
        for key, value in rows.items()
    ]
    return render_changelog(2, changes, style.codec)
