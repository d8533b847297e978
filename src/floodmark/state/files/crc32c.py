"""Computes CRC-32C for many rows at once (in numpy) or for one long file.

Spark puts it before rows (row checksums) and beside state files (`<file>.crc`).
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from floodmark.state.rows.rowbytes import gather

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from floodmark.state.rows.rowbytes import RowBytes

    Crcs = NDArray[np.uint32]

_POLYNOMIAL = 0x82F63B78


@lru_cache(maxsize=1)
def _table() -> Crcs:
    import numpy as np

    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, (table >> 1) ^ np.uint32(_POLYNOMIAL), table >> 1)
    return table.astype(np.uint32)


def crc_rows(rows: RowBytes, start: Crcs | None = None) -> Crcs:
    """Return the CRC of every row; `start` continues other CRCs: first the key, then the value."""
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
    """Return the CRC of one file, with the processor's own instruction."""
    import google_crc32c

    return int(google_crc32c.value(data))
