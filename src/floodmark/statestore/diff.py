"""Compares two states key by key: added, removed and changed keys.

Only hashes of keys and values are held, 32 bytes for each key, so it works on states that are
larger than memory. The rows of the first differences are then read again to be shown.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from floodmark.checkpoint.model import Checkpoint
from floodmark.errors import WrongUse
from floodmark.screen import ShownByFields
from floodmark.state.keys.keyset import hash_rows
from floodmark.state.rows.unsaferow_write import encode_rows
from floodmark.statestore.open import open_state
from floodmark.statestore.view import StateView, plain_rows
from floodmark.storage.files import Files

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    Hashes = NDArray[np.uint64]

_STEP = 0x9E3779B97F4A7C15


@dataclass(frozen=True)
class StateChange:
    """One key with its rows before and after: a list or a map has several."""

    change: str
    """`added`, `removed` or `changed`."""
    key: dict[str, Any]
    """Column → value of the key."""
    before: tuple[dict[str, Any], ...]
    """Its rows before; empty if it was added."""
    after: tuple[dict[str, Any], ...]
    """Its rows after; empty if it was removed."""


@dataclass(frozen=True, repr=False)
class StateDiff(ShownByFields):
    """What changed in one store from one batch to another."""

    added: int
    """The number of added keys."""
    removed: int
    """The number of removed keys."""
    changed: int
    """Keys whose rows differ."""
    same: int
    """The number of keys with the same rows."""
    first: tuple[StateChange, ...]
    """The first keys that differ, up to the limit."""

    @property
    def differ(self) -> int:
        """Whether any key was added, changed or removed."""
        return self.added + self.removed + self.changed


@dataclass(frozen=True)
class _Summary:
    """A state's keys in the order of their hashes, with the hash of each key's rows."""

    keys: Hashes
    values: Hashes
    places: NDArray[np.int64]
    """The position at which each key was read: differences are shown in that order."""

    def only(self, rows: Any) -> Hashes:
        """Return some of the keys, in the order in which they were read."""
        return self.keys[:, rows][:, self.places[rows].argsort()]


def state_changes(
    files: Files,
    checkpoint: Checkpoint,
    operator: int = 0,
    store: str | None = None,
    first: int = 0,
    last: int | None = None,
    limit: int = 100,
) -> StateDiff:
    """Return what changed between the end of batch `first` and the end of batch `last`."""
    before = open_state(files, checkpoint, operator, store, first)
    after = open_state(files, checkpoint, operator, store, last)
    if before.batch > after.batch:
        raise WrongUse(
            f"batch {before.batch} is after batch {after.batch}", do="Give the earlier batch first."
        )
    return diff_state(before, after, limit)


def diff_state(before: StateView, after: StateView, limit: int = 10) -> StateDiff:
    import numpy as np

    if before.key_type != after.key_type:
        raise WrongUse(
            "the two states have different keys",
            f"One has {before.key_schema}, the other {after.key_schema}.",
            "Choose stores of one query: --operator and --store.",
        )
    old, new = _summary(before), _summary(after)
    in_new, at_new = _find(old.keys, new.keys)
    in_old, _ = _find(new.keys, old.keys)
    comparable = before.value_type == after.value_type
    equal = (old.values[:, in_new] == new.values[:, at_new[in_new]]).all(axis=0)
    both = np.flatnonzero(in_new)
    changed = old.only(both[~equal] if comparable else both)
    added, removed = new.only(np.flatnonzero(~in_old)), old.only(np.flatnonzero(~in_new))
    shown = np.concatenate([changed, removed, added], axis=1)[:, :limit]
    return StateDiff(
        added.shape[1],
        removed.shape[1],
        changed.shape[1],
        int(in_new.sum()) - changed.shape[1],
        tuple(_shown(before, after, shown)),
    )


def _hashed(view: StateView) -> Iterator[tuple[pa.RecordBatch, Hashes]]:
    for batch in view.batches():
        yield batch, hash_rows(encode_rows(batch.column(1), view.key_type))


def _summary(view: StateView) -> _Summary:
    import numpy as np

    keys, values = [], []
    for batch, hashes in _hashed(view):
        keys.append(hashes)
        values.append(hash_rows(encode_rows(batch.column(2), view.value_type)))
    none = np.zeros((2, 0), np.uint64)
    return _grouped(
        np.concatenate(keys or [none], axis=1), np.concatenate(values or [none], axis=1)
    )


def _grouped(keys: Hashes, values: Hashes) -> _Summary:
    """Return one entry for each key: the sum of its rows' hashes, each mixed with its place."""
    import numpy as np

    order = np.lexsort((keys[1], keys[0]))
    keys, values = keys[:, order], values[:, order]
    if not keys.shape[1]:
        return _Summary(keys, values, order)
    new = np.concatenate([[True], (keys[:, 1:] != keys[:, :-1]).any(axis=0)])
    starts = np.flatnonzero(new)
    place = np.arange(len(order)) - np.repeat(starts, np.diff(np.append(starts, len(order))))
    turned = (values + place.astype(np.uint64) * np.uint64(_STEP)) * np.uint64(_STEP)
    turned ^= turned >> np.uint64(31)
    return _Summary(keys[:, starts], np.add.reduceat(turned, starts, axis=1), order[starts])


def _find(wanted: Hashes, there: Hashes) -> tuple[Any, Any]:
    """Return which wanted keys exist, and where."""
    import numpy as np

    if not there.shape[1]:
        return np.zeros(wanted.shape[1], bool), np.zeros(wanted.shape[1], np.int64)
    at = np.searchsorted(there[0], wanted[0])
    at = np.minimum(at, there.shape[1] - 1)
    return (there[:, at] == wanted).all(axis=0), at


def _shown(before: StateView, after: StateView, wanted: Hashes) -> Iterator[StateChange]:
    if not wanted.shape[1]:
        return
    names = {(int(a), int(b)): at for at, (a, b) in enumerate(wanted.T)}
    old, new = _rows_of(before, names), _rows_of(after, names)
    for at in range(len(names)):
        gone, come = old.get(at, []), new.get(at, [])
        change = "changed" if gone and come else "removed" if gone else "added"
        yield StateChange(
            change,
            (gone or come)[0]["key"],
            tuple(row["value"] for row in gone),
            tuple(row["value"] for row in come),
        )


def _rows_of(view: StateView, names: dict[tuple[int, int], int]) -> dict[int, list[dict[str, Any]]]:
    import numpy as np

    firsts = np.array([first for first, _ in names], np.uint64)
    found: dict[int, list[dict[str, Any]]] = {}
    for batch, hashes in _hashed(view):
        for row in np.nonzero(np.isin(hashes[0], firsts))[0].tolist():
            at = names.get((int(hashes[0, row]), int(hashes[1, row])))
            if at is not None:
                found.setdefault(at, []).extend(plain_rows(batch.slice(row, 1)))
    return found
