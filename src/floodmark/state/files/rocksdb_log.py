"""Checks whether the records of a RocksDB MANIFEST are complete, by their checksums.

RocksDB tries a damaged MANIFEST again and again, forever: it is refused before it gets there.

blocks of 32 KiB; in each, records: checksum (4 bytes), length (2), kind (1), content     a block's
last bytes, too few for a record, are zero
"""

from __future__ import annotations

import struct

from floodmark.errors import MalformedFile
from floodmark.state.files.crc32c import crc_of

_BLOCK = 32 << 10
_HEADER = struct.Struct("<IHB")
_LAST_PLAIN, _LAST_KIND = 4, 8
_LOG_NUMBER = 4
"""Bytes for the log's number, which is in each record's header if the log was reused."""


def require_whole_log(name: str, data: bytes) -> None:
    at = 0
    while at < len(data):
        left = _BLOCK - at % _BLOCK
        if left < _HEADER.size or not any(data[at : at + _HEADER.size]):
            at += left  # the end of a block, or space that was never written
            continue
        at = _after_record(name, data, at)


def _after_record(name: str, data: bytes, at: int) -> int:
    if at + _HEADER.size > len(data):
        raise _damaged(name, at)
    found: tuple[int, int, int] = _HEADER.unpack_from(data, at)
    checksum, length, kind = found
    start = at + _HEADER.size
    end = start + length + (_LOG_NUMBER if kind > _LAST_PLAIN else 0)
    if not 0 < kind <= _LAST_KIND or end > len(data) or end > at - at % _BLOCK + _BLOCK:
        raise _damaged(name, at)
    # The checksum includes the kind.
    if _masked(crc_of(data[start - 1 : end])) != checksum:
        raise _damaged(name, at)
    return end


def _masked(checksum: int) -> int:
    """Rotate and shift the checksum, as RocksDB stores it."""
    return ((checksum >> 15 | checksum << 17) + 0xA282EAD8) & 0xFFFFFFFF


def _damaged(name: str, at: int) -> MalformedFile:
    return MalformedFile(
        f"{name} is damaged at byte {at}",
        "The file lists the tables of a RocksDB snapshot.",
        "Restore the snapshot from a backup; `floodmark repair CP` says what else can be done.",
    )
