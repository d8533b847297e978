"""Counts the rows of a state, and computes a checksum that does not depend on their order.

The checksum of all rows is the sum of a 128-bit hash of each row. So two states with the same rows
have the same checksum, however their partitions and files are cut.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from floodmark.state.keys.keyset import Mixing, hash_rows

if TYPE_CHECKING:
    from floodmark.state.files.records import Records

# These are fixed, so that processes on many machines compute the same sum.
_KEYS = Mixing((0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F), (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53))
_VALUES = Mixing((0x165667B19E3779F9, 0x27D4EB2F165667C5), (0x87C37B91114253D5, 0x4CF5AD432745937F))
_MASK = (1 << 64) - 1


@dataclass(frozen=True)
class Tally:
    rows: int = 0
    sums: tuple[int, int] = (0, 0)

    def __add__(self, other: Tally) -> Tally:
        first, second = ((a + b) & _MASK for a, b in zip(self.sums, other.sums, strict=True))
        return Tally(self.rows + other.rows, (first, second))

    @property
    def checksum(self) -> str:
        return "".join(f"{half:016x}" for half in self.sums)


def tally(records: Records) -> Tally:
    """Return the tally of live records: keys with their values."""
    import numpy as np

    keys, values = hash_rows(records.keys, _KEYS), hash_rows(records.values, _VALUES)
    # The product ties a value to its key; a sum of both would not notice swapped values.
    mixed = (keys | np.uint64(1)) * (values ^ keys[::-1])
    first, second = (int(half.sum(dtype=np.uint64)) for half in mixed)
    return Tally(len(records), (first, second))
