"""A file's checksum from its chunks', compared with zlib's over the whole."""

from __future__ import annotations

import random
import sys
import zlib

import pytest

from floodmark.checkpoint.checksums.chunk_crc import joined
from floodmark.checkpoint.checksums.sidefiles import agrees, crc_over, side_file_of, whole_sum

SIZES = [0, 1, 511, 512, 513, 1024, 5000, 64 * 512, 65 * 512 + 7, 100_000, 1 << 20]


def sums(data: bytes, chunk: int) -> bytes:
    pieces = (data[at : at + chunk] for at in range(0, len(data), chunk))
    return b"".join(zlib.crc32(piece).to_bytes(4, "big") for piece in pieces)


@pytest.mark.parametrize("chunk", [1, 3, 512, 4096])
@pytest.mark.parametrize("size", SIZES[:-2])
def test_the_chunks_make_the_whole(size: int, chunk: int) -> None:
    data = random.Random(size).randbytes(size)
    assert joined(sums(data, chunk), chunk, size) == zlib.crc32(data)


@pytest.mark.parametrize("size", SIZES)
def test_a_side_file_agrees_until_a_bit_flips(size: int) -> None:
    chance = random.Random(size)
    data = chance.randbytes(size)
    side = side_file_of(data)
    assert agrees(side, data)
    for _ in range(20 if size else 0):
        flipped = bytearray(data)
        flipped[chance.randrange(size)] ^= 1 << chance.randrange(8)
        assert not agrees(side, bytes(flipped))
    for _ in range(20 if size else 0):
        wrong = bytearray(side)
        wrong[chance.randrange(8, len(side))] ^= 1 << chance.randrange(8)
        assert not agrees(bytes(wrong), data)
    assert not agrees(side[:-1], data)
    assert not agrees(side + b"\0\0\0\0", data)


def test_without_the_fast_checksum_zlib_serves(monkeypatch: pytest.MonkeyPatch) -> None:
    data = random.Random(7).randbytes(100_000)
    assert crc_over()(data[9:], crc_over()(data[:9])) == whole_sum(side_file_of(data), len(data))
    monkeypatch.setitem(sys.modules, "isal.isal_zlib", None)
    assert crc_over.__wrapped__() is zlib.crc32
