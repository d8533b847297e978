"""Checks whether a state file is complete, byte by byte, without building rows.

lz4, Spark's default, has a checksum for every block. If they match and the stream is closed, the
content is what Spark wrote. The other codecs have no checksums: their records must lead to the end.
A file whose bytes are vouched for only has to be complete.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from floodmark.errors import MalformedFile
from floodmark.state.files.compression import LZ4_MAGIC, lz4_ends, pieces
from floodmark.state.files.hdfs import file_records
from floodmark.state.files.records import CLOSING
from floodmark.state.files.rocksdb import DELETE, END, PUT, changelog_head, parse_changelog

_INT = struct.Struct(">i")
TAIL = 8
"""How many bytes at the end of a content show whether it is closed."""


@dataclass(frozen=True)
class Content:
    """The two ends of a file's content: its first block, and its last bytes."""

    head: bytes
    tail: bytes


def content_of(
    data: bytes, kind: str, vouched: bool = False, row_checksums: bool = False
) -> Content:
    """Check a delta, a snapshot or a changelog to its end; damage is an error."""
    is_lz4 = data.startswith(LZ4_MAGIC)
    found = Content(*lz4_ends(data, TAIL)) if vouched and is_lz4 else _through(data)
    if row_checksums or not (is_lz4 or vouched):
        _records(data, kind, row_checksums)
    else:
        check_end(found, kind)
    return found


def _through(data: bytes) -> Content:
    head, tail = None, b""
    for piece in pieces(data):
        if head is None:
            head = piece
        tail = piece[-TAIL:] if len(piece) >= TAIL else (tail + piece)[-TAIL:]
    return Content(head or b"", tail)


def _records(data: bytes, kind: str, row_checksums: bool) -> None:
    if kind == "changelog":
        parse_changelog(data, row_checksums)
        return
    for _ in file_records("", data, kind == "delta", row_checksums):
        pass


def check_end(content: Content, kind: str) -> None:
    """Raise if the closing mark does not follow the last record."""
    typed = kind == "changelog" and changelog_head(content.head)[0] in (2, 4)
    closed = content.tail[-1:] == bytes([END]) if typed else content.tail.endswith(CLOSING)
    if not closed:
        raise MalformedFile(
            "the file ends before its last record",
            "The file's write or a copy of it was interrupted.",
        )


def first_keys(head: bytes, kind: str, most: int, row_checksums: bool = False) -> list[bytes]:
    """Return some keys of a content's first block, as the store keeps them."""
    version, at = changelog_head(head) if kind == "changelog" else (1, 0)
    typed = version in (2, 4)
    found: list[bytes] = []
    end = len(head)
    while len(found) < most:
        if typed:
            if at >= end or head[at] not in (PUT, DELETE):
                break  # merges and ranges have no place among plain keys
            at += 1
        if at + 4 > end:
            break
        size = _INT.unpack_from(head, at)[0]
        value_at = at + 4 + size
        if size < 0 or value_at + 4 > end:
            break
        value = _INT.unpack_from(head, value_at)[0]
        # The checksum of a removed key is before the key; other rows have it in their value.
        found.append(head[at + 4 + 4 * (row_checksums and value < 0) : value_at])
        at = value_at + 4 + max(value, 0)
    return found
