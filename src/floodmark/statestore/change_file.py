"""Writes one version of a store as changes since the version before: a delta or a changelog.

The state that an uncommitted batch has left is written in this form, and not as a snapshot. If the
batch runs again, Spark replaces such a file, but would prefer a snapshot beside it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

from floodmark.checkpoint.layout import FileInfo
from floodmark.checkpoint.relative_path import RelativePath
from floodmark.state.files.compression import compress
from floodmark.state.files.crc32c import crc_rows
from floodmark.state.files.records import Records, render_records
from floodmark.state.files.rocksdb import DELETE, PUT, ChangelogRecord
from floodmark.state.files.rocksdb_write import render_changelog
from floodmark.state.rows.encoding import with_checksums
from floodmark.state.rows.layout import Layout
from floodmark.state.rows.rowbytes import row_bytes
from floodmark.state.shapes.tally import Tally, tally
from floodmark.statestore.write import HDFS, StoreFormat, WrittenStore
from floodmark.storage.files import WritableFiles

_PLAIN = Layout(None, None)


def write_change(
    files: WritableFiles,
    folder: str,
    version: int,
    before: Iterable[Records],
    after: Iterable[Records],
    style: StoreFormat,
) -> WrittenStore:
    """Write all rows of the version, and remove keys that only the version before had."""
    rows: dict[bytes, bytes | None] = {}
    counted = Tally()
    for records in after:
        counted += tally(records)
        values = records.values
        if style.row_checksums and style.provider == HDFS:
            values = with_checksums(_PLAIN, records.keys, values)
        rows.update(zip(records.keys.to_list(), values.to_list(), strict=True))
    gone = [key for records in before for key in records.keys.to_list() if key not in rows]
    rows.update(dict.fromkeys(_removals(gone, style)))
    path = f"{folder}/{version}.{'delta' if style.provider == HDFS else 'changelog'}"
    data = _rendered(rows, style)
    files.write(RelativePath(path), data)
    return WrittenStore((FileInfo(path, len(data)),), counted)


def _removals(keys: list[bytes], style: StoreFormat) -> list[bytes]:
    """Return removed keys with their checksums before them, because they have no value."""
    if not style.row_checksums:
        return keys
    crcs = crc_rows(row_bytes(keys)).tolist()
    return [struct.pack("<I", crc) + key for crc, key in zip(crcs, keys, strict=True)]


def _rendered(rows: dict[bytes, bytes | None], style: StoreFormat) -> bytes:
    if not style.families:
        return compress(render_records(list(rows), list(rows.values())), style.codec)
    changes = [
        ChangelogRecord(DELETE, key, b"") if value is None else ChangelogRecord(PUT, key, value)
        for key, value in rows.items()
    ]
    return render_changelog(2, changes, style.codec)
