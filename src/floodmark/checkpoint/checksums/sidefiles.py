"""Reads and writes Hadoop's hidden `.NAME.crc` files: one CRC-32 for every 512 bytes."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from functools import lru_cache
from importlib.util import find_spec
from typing import cast

from floodmark.checkpoint.checksums.chunk_crc import joined

MAGIC = b"crc\0"
_HEADER = struct.Struct(">4sI")
_PER_CHECKSUM = 512
_SEARCHED = 4096
_WORTH_JOINING = 4 * 64


def side_file_of(data: bytes) -> bytes:
    """Return the side file that Hadoop writes beside these bytes."""
    return _HEADER.pack(MAGIC, _PER_CHECKSUM) + b"".join(_sums(data, _PER_CHECKSUM))


def agrees(side: bytes, data: bytes) -> bool:
    found = _chunk_and_sums(side, len(data))
    if found is None:
        return False
    chunk, sums = found
    if len(sums) < _WORTH_JOINING or not can_join():
        return sums == b"".join(_sums(data, chunk))
    return joined(sums, chunk, len(data)) == crc_over()(data)


@lru_cache(maxsize=1)
def can_join() -> bool:
    return find_spec("numpy") is not None


def whole_sum(side: bytes, size: int) -> int | None:
    """Return the CRC-32 of a file of `size` bytes from its side file, or None if that is
    damaged.
    """
    found = _chunk_and_sums(side, size)
    return None if found is None else joined(found[1], found[0], size)


@lru_cache(maxsize=1)
def crc_over() -> Callable[..., int]:
    """Return `zlib.crc32`, or a function that uses the processor's own instructions.

    The second is ten times as fast.
    """
    try:
        from isal.isal_zlib import crc32
    except ImportError:
        return zlib.crc32
    return cast(Callable[..., int], crc32)


def _chunk_and_sums(side: bytes, size: int) -> tuple[int, bytes] | None:
    """Return (bytes a checksum, the checksums), or None if their number does not fit `size`."""
    if len(side) < _HEADER.size:
        return None
    magic, chunk = _HEADER.unpack_from(side)
    if magic != MAGIC or not 0 < chunk <= 1 << 30:
        return None
    sums = side[_HEADER.size :]
    return (chunk, sums) if len(sums) == 4 * -(-size // chunk) else None


def _sums(data: bytes, chunk: int) -> list[bytes]:
    view = memoryview(data)
    return [
        zlib.crc32(view[at : at + chunk]).to_bytes(4, "big") for at in range(0, len(data), chunk)
    ]


def _each(sums: bytes) -> list[bytes]:
    return [sums[at : at + 4] for at in range(0, len(sums), 4)]


def without_flips(side: bytes, data: bytes) -> bytes | None:
    """Return the bytes that the side file was written for, if one bit a chunk has flipped.

    No two bits of a chunk change its CRC-32 in the same way, so the difference names the bit.
    """
    sums = _chunk_and_sums(side, len(data))
    if sums is None:
        return None
    chunk, stored = sums
    mended = bytearray(data)
    for at, (wanted, found) in enumerate(zip(_each(stored), _sums(data, chunk), strict=True)):
        if wanted == found:
            continue
        start = at * chunk
        length = min(chunk, len(data) - start)
        if length > _SEARCHED:
            return None
        difference = int.from_bytes(wanted, "big") ^ int.from_bytes(found, "big")
        bit = _bits_by_difference(length).get(difference)
        if bit is None:
            return None
        mended[start + bit // 8] ^= 1 << bit % 8
    return bytes(mended)


def is_itself_damaged(side: bytes, data: bytes) -> bool:
    """Whether the checksums are damaged and not the file: their shape is wrong, or one bit."""
    sums = _chunk_and_sums(side, len(data))
    if sums is None:
        return len(side) != side_file_size(len(data)) or side[:4] != MAGIC
    chunk, stored = sums
    differences = [
        int.from_bytes(wanted, "big") ^ int.from_bytes(found, "big")
        for wanted, found in zip(_each(stored), _sums(data, chunk), strict=True)
        if wanted != found
    ]
    return len(differences) == 1 and differences[0].bit_count() == 1


@lru_cache(maxsize=8)
def _bits_by_difference(length: int) -> dict[int, int]:
    """Map each change of a CRC-32 over `length` bytes to the bit that causes it."""
    nothing = zlib.crc32(bytes(length))
    found = {}
    for at in range(length):
        for bit in range(8):
            flipped = bytearray(length)
            flipped[at] = 1 << bit
            found[zlib.crc32(flipped) ^ nothing] = 8 * at + bit
    return found


def side_file_size(size: int) -> int:
    """Return the length of the side file of `size` bytes, with Hadoop's usual chunks."""
    return _HEADER.size + 4 * -(-size // _PER_CHECKSUM)
