"""HDFSBackedStateStore: turns deltas and snapshots into the rows of a version, and back.

Version V is the newest snapshot up to V and every delta after it. The files are read from the
newest to the oldest: a key in a newer file hides the same key in an older one. So only the hashes
of the keys seen so far are kept, and the rows are passed on in pieces.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

from floodmark.errors import FloodmarkError, MalformedFile
from floodmark.limits import current, over_limit
from floodmark.state.files.compression import compress, pieces, segments
from floodmark.state.files.records import Records, render_records, scan
from floodmark.state.rows.rowbytes import RowBytes, as_bytes, gather

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from floodmark.state.keys.keyset import Hashes, KeySet

SEGMENT = 8 << 20
"""Bytes of content to decode at once: small enough for a processor's cache."""

HELD = 96 << 20
"""Bytes of content to keep between the two passes over a delta."""

CHECKSUM_SIZE = 4
_A_RECORD = 40
"""Bytes for the positions of a record's key and value."""
_A_KEY = 64
"""Bytes for each key during the comparison: its hashes, and their order."""


@dataclass(frozen=True)
class StateSource:
    """One file of a chain, or an opened snapshot: its name and its records."""

    path: str
    is_delta: bool
    records: Callable[[], Iterator[Records]]
    """Returns the records in pieces; each call begins again at the first record."""


class StateChecksumFailed(MalformedFile):
    """Raised if a row does not match the checksum that Spark wrote beside it."""


def hdfs_source(
    path: str, is_delta: bool, read: Callable[[], bytes], row_checksums: bool = False
) -> StateSource:
    return StateSource(path, is_delta, lambda: file_records(path, read(), is_delta, row_checksums))


def file_records(
    path: str, data: bytes, is_delta: bool = True, row_checksums: bool = False
) -> Iterator[Records]:
    """Yield the records of one delta or snapshot; errors name the file."""
    try:
        for records in _read(data):
            if not is_delta and records.removed.any():
                raise MalformedFile("a snapshot removes a key")
            yield verified(records) if row_checksums else _without_stray_bytes(records)
    except FloodmarkError as error:
        error.name_file(path)
        raise


def _read(data: bytes) -> Iterator[Records]:
    held: list[bytes] = []
    size = enough = 0
    for piece in chain(segments(pieces(data), SEGMENT), [None]):
        if piece is not None:
            held.append(piece)
            size += len(piece)
        if not size or (piece is not None and size < enough):
            continue
        buffer = b"".join(held) if len(held) > 1 else held[0]
        found = scan(as_bytes(buffer))
        if len(found.records):
            yield found.records
        if found.ended:
            return
        held = [buffer[found.position :]]
        size = len(held[0])
        # A record that is larger than a segment is tried again with twice as much data.
        enough = 0 if len(found.records) else 2 * size
    raise MalformedFile(
        "the file ends before its last record",
        "The file's write or a copy of it was interrupted.",
    )


def _without_stray_bytes(records: Records) -> Records:
    """Cut values to whole words: Spark up to 2.2 wrote some values 4 bytes too long."""
    values = records.values
    return Records(
        records.keys, RowBytes(values.data, values.starts, values.lengths & ~7), records.removed
    )


def verified(records: Records) -> Records:
    """Check the row checksums of records, and return the records without them."""
    import numpy as np

    kept, gone = np.nonzero(~records.removed)[0], np.nonzero(records.removed)[0]
    keys, values = records.keys.take(kept), records.values.take(kept)
    _check(keys, values.skip(CHECKSUM_SIZE), _written(values))
    # A removed key has no value for the checksum, so the checksum is before the key.
    removed = records.keys.take(gone)
    _check(removed.skip(CHECKSUM_SIZE), None, _written(removed))
    shift = np.where(records.removed, CHECKSUM_SIZE, 0)
    other = CHECKSUM_SIZE - shift
    return Records(
        RowBytes(records.keys.data, records.keys.starts + shift, records.keys.lengths - shift),
        RowBytes(
            records.values.data,
            records.values.starts + other,
            np.maximum(records.values.lengths - other, 0),
        ),
        records.removed,
    )


def _written(rows: RowBytes) -> NDArray[np.uint32]:
    rows.skip(CHECKSUM_SIZE)
    return gather(rows.data, rows.starts, "<u4")


def _check(keys: RowBytes, values: RowBytes | None, written: NDArray[np.uint32]) -> None:
    from floodmark.state.files.crc32c import crc_rows

    found = crc_rows(keys)
    if values is not None:
        found = crc_rows(values, found)
    wrong = int((found != written).sum())
    if wrong:
        raise StateChecksumFailed(
            f"{wrong} of {len(keys)} rows do not match their checksum",
            "The file was damaged after Spark wrote it.",
        )


def live_records(sources: Sequence[StateSource]) -> Iterator[Records]:
    """Yield what is left of a chain, newest source first: no removed keys, no key twice."""
    from floodmark.state.keys.keyset import KeySet

    seen = KeySet()
    for number, source in enumerate(sources):
        oldest = number == len(sources) - 1
        yield from _live_in(source, seen, oldest)


def _live_in(source: StateSource, seen: KeySet, oldest: bool) -> Iterator[Records]:
    import numpy as np

    if not source.is_delta and not len(seen):
        # A snapshot has each key once, and no newer file can hide it.
        yield from source.records()
        return
    from floodmark.state.keys.keyset import hash_rows, last_of_each

    held: list[Records] | None = []
    every: list[Hashes] = []
    size = count = 0
    most = current().memory // _A_KEY - len(seen)
    for records in source.records():
        count += len(records)
        if count > most:
            raise over_limit(f"{source.path}: a list of over {most:,} keys", None, "memory")
        every.append(hash_rows(records.keys))
        size += len(records.keys.data) + _A_RECORD * len(records)
        if held is not None:
            # Content that fits is kept for the second pass; other content is read once more.
            held = [*held, records] if size <= HELD else None
    hashes = np.concatenate(every, axis=1) if every else np.zeros((2, 0), np.uint64)
    every.clear()
    keep = ~seen.contains(hashes)
    if source.is_delta:
        keep &= last_of_each(hashes)
    if oldest:
        del hashes
    at = 0
    for records in source.records() if held is None else held:
        mask = keep[at : at + len(records)] & ~records.removed
        at += len(records)
        yield records if mask.all() else records.take(np.nonzero(mask)[0])
    if not oldest:
        seen.add(hashes)


def write_snapshot(keys: list[bytes], values: list[bytes], codec: str = "lz4") -> bytes:
    return compress(render_records(keys, list(values)), codec)
