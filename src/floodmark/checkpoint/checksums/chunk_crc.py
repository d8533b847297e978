"""Computes the CRC-32 of a whole file from the CRCs of its chunks, without reading the file.

Zero bytes after a text change its CRC by a linear map of the CRC's bits. The CRC of two parts is
therefore the CRC of the first part, mapped over the length of the second, XOR the CRC of the second
part. The code joins neighbours pair by pair.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Sums = NDArray[np.uint32]

_POLYNOMIAL = 0xEDB88320


def joined(sums: bytes, chunk: int, size: int) -> int:
    """Return the CRC-32 of a file of `size` bytes.

    `sums` has one big-endian CRC-32 for every `chunk` bytes of the file.
    """
    import numpy as np

    state = np.frombuffer(sums, ">u4").astype(np.uint32)
    rest = size % chunk
    last = state[-1:] if rest else state[:0]
    if rest:
        state = state[:-1]
    length = chunk
    while len(state) > 1:
        if len(state) % 2:
            # The CRC of nothing is 0, and before the others it adds nothing.
            state = np.concatenate([np.zeros(1, np.uint32), state])
        state = _moved(state[0::2], length) ^ state[1::2]
        length *= 2
    if rest:
        state = _moved(state, rest) ^ last if len(state) else last
    return int(state[0]) if len(state) else 0


def _moved(sums: Sums, length: int) -> Sums:
    """Return each CRC as it is after `length` more zero bytes."""
    import numpy as np

    tables = _tables(length)
    octets = np.ascontiguousarray(sums, "<u4").view(np.uint8)
    found: Sums = tables[0].take(octets[0::4])
    for octet in (1, 2, 3):
        found ^= tables[octet].take(octets[octet::4])
    return found


@lru_cache(maxsize=256)
def _tables(length: int) -> Sums:
    """Return, for each byte of a CRC and each value of it, the CRC after `length` zero bytes."""
    import numpy as np

    columns = _columns(length)
    tables = np.zeros((4, 256), np.uint32)
    for octet in range(4):
        for bit in range(8):
            step = 1 << bit
            tables[octet, step : 2 * step] = tables[octet, :step] ^ columns[8 * octet + bit]
    return tables


@lru_cache(maxsize=256)
def _columns(length: int) -> tuple[int, ...]:
    """Return, for each single bit of a CRC, the CRC after `length` zero bytes."""
    if length == 1:
        return tuple(_after_a_byte(1 << bit) for bit in range(32))
    half = _columns(length // 2)
    whole = tuple(_apply(half, column) for column in half)
    return tuple(map(_after_a_byte, whole)) if length % 2 else whole


def _after_a_byte(value: int) -> int:
    for _ in range(8):
        value = (value >> 1) ^ (_POLYNOMIAL if value & 1 else 0)
    return value


def _apply(columns: tuple[int, ...], value: int) -> int:
    found = 0
    for bit in range(32):
        if value >> bit & 1:
            found ^= columns[bit]
    return found
