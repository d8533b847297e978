"""RocksDB tables that a stranger has changed: their checksums fit, and RocksDB believes them."""

from __future__ import annotations

from random import Random

import numpy as np

from floodmark.state.files.sstable import table_walk

_TRAILER = 5


def forged(table: bytes, drawn: Random) -> bytes:
    """Some bytes of one block are other ones, with the checksum that they have now."""
    walk = table_walk(len(table), lambda at, size: table[at : at + size])
    if walk is None:
        return table
    ends = walk._after - _TRAILER
    block = drawn.randrange(len(ends))
    size, end = int(walk._sizes[block]), int(ends[block])
    content = bytearray(table)
    for _ in range(drawn.choice([1, 1, 2, 8])):
        content[end - 1 - drawn.randrange(size)] = drawn.choice([0, 1, 0x7F, 0x80, 0xFF])
    whole = np.array([end])
    checksum = walk._checksums(memoryview(content), whole - size, whole)
    content[end + 1 : end + _TRAILER] = checksum.tobytes()
    return bytes(content)
