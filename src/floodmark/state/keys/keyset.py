"""Remembers keys by a 128-bit hash of their bytes.

The hash has a new seed in every process, so nobody can prepare two keys that collide. By chance it
does not happen (10 million keys: one in 10^25).
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any, NamedTuple

from floodmark.state.rows.rowbytes import RowBytes, gather

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Hashes = NDArray[np.uint64]
    Mask = NDArray[np.bool_]

_SLOTS_A_KEY = 32
_MOST_SLOT_BITS = 23
_FINAL = (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)


class Mixing(NamedTuple):
    """The seeds of the two hashes, and their factors, which are odd."""

    seeds: tuple[int, int]
    factors: tuple[int, int]


_OURS = Mixing(
    (secrets.randbits(64), secrets.randbits(64)),
    (secrets.randbits(64) | 1, secrets.randbits(64) | 1),
)


def hash_rows(rows: RowBytes, mixing: Mixing = _OURS) -> Hashes:
    """Return two 64-bit hashes for each row, as an array of shape (2, n)."""
    import numpy as np

    hashes = np.empty((2, len(rows)), np.uint64)
    for which in range(2):
        hashes[which] = rows.lengths.astype(np.uint64) * np.uint64(mixing.factors[which])
        hashes[which] ^= np.uint64(mixing.seeds[which])
    if not len(rows):
        return hashes
    same = int(rows.lengths.min()) == int(rows.lengths.max())
    for at in range(0, int(rows.lengths.max()), 8):
        live = slice(None) if same else np.nonzero(rows.lengths > at)[0]
        words = _words(rows.take(live), at)
        for which in range(2):
            mixed = (hashes[which, live] ^ words) * np.uint64(mixing.factors[which])
            hashes[which, live] = mixed ^ (mixed >> np.uint64(29 + 3 * which))
    for which in range(2):
        mixed = hashes[which] * np.uint64(_FINAL[which])
        hashes[which] = mixed ^ (mixed >> np.uint64(32))
    return hashes


def _words(rows: RowBytes, at: int) -> Any:
    """Return the 8 bytes of every row from `at` on; the last bytes of a row may be fewer."""
    import numpy as np

    whole = rows.lengths >= at + 8
    if whole.all():
        return gather(rows.data, rows.starts + at, "<u8")
    words = np.zeros(len(rows), np.uint64)
    words[whole] = gather(rows.data, rows.starts[whole] + at, "<u8")
    for byte in range(7):
        live = np.nonzero(~whole & (rows.lengths > at + byte))[0]
        octets = gather(rows.data, rows.starts[live] + at + byte, "u1").astype(np.uint64)
        words[live] |= octets << np.uint64(8 * byte)
    return words


def last_of_each(hashes: Hashes) -> Mask:
    """Return a mask that is true for the last row of every key."""
    import numpy as np

    first = hashes[0]
    ordered = np.sort(first)
    keep = np.ones(len(first), bool)
    if not len(first) or not (ordered[1:] == ordered[:-1]).any():
        return keep
    order = np.lexsort((hashes[1], first))
    again = (first[order][1:] == first[order][:-1]) & (
        hashes[1][order][1:] == hashes[1][order][:-1]
    )
    # lexsort is stable: the rows of a key keep the order of the file.
    keep[order[:-1][again]] = False
    return keep


class KeySet:
    """A set of keys that grows by whole files, newest first."""

    def __init__(self) -> None:
        import numpy as np

        self._hashes = np.zeros((2, 0), np.uint64)
        self._most = 0
        """The largest number of keys with the same first hash: 1, except by chance."""

    def __len__(self) -> int:
        return self._hashes.shape[1]

    def add(self, hashes: Hashes) -> None:
        import numpy as np

        merged = np.concatenate([self._hashes, hashes], axis=1)
        merged = merged[:, np.lexsort((merged[1], merged[0]))]
        same = (merged[:, 1:] == merged[:, :-1]).all(axis=0)
        merged = merged[:, np.concatenate([[True], ~same])] if merged.shape[1] else merged
        self._hashes = np.ascontiguousarray(merged)
        runs = np.diff(
            np.flatnonzero(np.concatenate([[True], merged[0, 1:] != merged[0, :-1], [True]]))
        )
        self._most = int(runs.max()) if merged.shape[1] else 0

    def contains(self, hashes: Hashes) -> Mask:
        import numpy as np

        if hashes.shape[1] <= len(self):
            return self._search(hashes)
        found = np.zeros(hashes.shape[1], bool)
        if len(self):
            likely = self._likely(hashes[0])
            found[likely] = self._search(hashes[:, likely])
        return found

    def _likely(self, first: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Return the candidates: a table excludes most keys faster than a search does."""
        import numpy as np

        bits = min((_SLOTS_A_KEY * len(self)).bit_length(), _MOST_SLOT_BITS)
        shift = np.uint64(64 - bits)
        taken = np.zeros(1 << bits, bool)
        taken[(self._hashes[0] >> shift).astype(np.int64)] = True
        return np.nonzero(taken[(first >> shift).astype(np.int64)])[0]

    def _search(self, hashes: Hashes) -> Mask:
        import numpy as np

        found = np.zeros(hashes.shape[1], bool)
        places = np.searchsorted(self._hashes[0], hashes[0])
        for step in range(self._most):
            at = np.minimum(places + step, len(self) - 1)
            found |= (self._hashes[0, at] == hashes[0]) & (self._hashes[1, at] == hashes[1])
        return found
