"""Hadoop's hidden `.NAME.crc`: one CRC-32 for every 512 bytes of a file on a local disk."""

from __future__ import annotations

import struct
import zlib

MAGIC = b"crc\0"
_HEADER = struct.Struct(">4sI")
_PER_CHECKSUM = 512


def side_file_of(data: bytes) -> bytes:
    """What Hadoop writes beside these bytes."""
    return _HEADER.pack(MAGIC, _PER_CHECKSUM) + b"".join(_sums(data, _PER_CHECKSUM))


def agrees(side: bytes, data: bytes) -> bool:
    if len(side) < _HEADER.size:
        return False
    magic, chunk = _HEADER.unpack_from(side)
    if magic != MAGIC or not 0 < chunk <= 1 << 30:
        return False
    return side[_HEADER.size :] == b"".join(_sums(data, chunk))


def _sums(data: bytes, chunk: int) -> list[bytes]:
    view = memoryview(data)
    return [
        zlib.crc32(view[at : at + chunk]).to_bytes(4, "big") for at in range(0, len(data), chunk)
    ]


def side_file_size(size: int) -> int:
    """How long the side file of so many bytes is, with Hadoop's usual chunks."""
    return _HEADER.size + 4 * -(-size // _PER_CHECKSUM)
