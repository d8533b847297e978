"""CRC-32C in numpy, over many rows at once or over one long file.

Spark prefixes rows with it (row checksums) and keeps it beside state files (`<file>.crc`).
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from floodmark.state.rowbytes import as_bytes, gather

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from floodmark.state.rowbytes import RowBytes

    Crcs = NDArray[np.uint32]

_POLYNOMIAL = 0x82F63B78
_LANES = 4096


@lru_cache(maxsize=1)
def _table() -> Crcs:
    import numpy as np

    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, (table >> 1) ^ np.uint32(_POLYNOMIAL), table >> 1)
    return table.astype(np.uint32)


def crc_rows(rows: RowBytes, start: Crcs | None = None) -> Crcs:
    """The CRC of every row; `start` continues others, as of key then value."""
    import numpy as np

    table = _table()
    crcs = np.full(len(rows), 0xFFFFFFFF, np.uint32) if start is None else ~start
    longest = int(rows.lengths.max()) if len(rows) else 0
    for at in range(longest):
        live = np.nonzero(rows.lengths > at)[0]
        octets = gather(rows.data, rows.starts[live] + at, "u1")
        old = crcs[live]
        crcs[live] = table[(old ^ octets) & 0xFF] ^ (old >> 8)
    return ~crcs


def crc_of(data: bytes) -> int:
    """The CRC of one file: cut in lanes that are worked on side by side, then joined."""
    import numpy as np

    width = len(data) // _LANES
    table = _table()
    crc = np.uint32(0xFFFFFFFF)
    if width:
        lanes = as_bytes(data)[: width * _LANES].reshape(_LANES, width)
        # Only the first lane carries the initial value; zeros elsewhere make them add up.
        state = np.zeros(_LANES, np.uint32)
        state[0] = crc
        for at in range(width):
            state = table[(state ^ lanes[:, at]) & 0xFF] ^ (state >> 8)
        crc = _joined(state, width)
    for octet in data[width * _LANES :]:
        crc = table[(int(crc) ^ octet) & 0xFF] ^ (crc >> np.uint32(8))
    return int(~np.uint32(crc))


def _joined(state: Crcs, width: int) -> np.uint32:
    """Pairs of neighbours become one: the left one is moved on by the right one's zeros."""
    import numpy as np

    shift = _zeros(width)
    while len(state) > 1:
        state = _apply(shift, state[0::2]) ^ state[1::2]
        shift = _apply(shift, shift)
    return np.uint32(state[0])


def _zeros(width: int) -> Crcs:
    """What `width` zero bytes do to each bit of a CRC: a 32 by 32 matrix as columns."""
    import numpy as np

    table = _table()
    one = (np.uint32(1) << np.arange(32, dtype=np.uint32)).astype(np.uint32)
    step = table[one & 0xFF] ^ (one >> 8)
    result = one
    while width:
        if width & 1:
            result = _apply(step, result)
        step = _apply(step, step)
        width >>= 1
    return result


def _apply(matrix: Crcs, values: Crcs) -> Crcs:
    import numpy as np

    out = np.zeros(len(values), np.uint32)
    for bit in range(32):
        out ^= np.where((values >> np.uint32(bit)) & 1, matrix[bit], np.uint32(0))
    return out
