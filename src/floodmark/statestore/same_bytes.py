"""Tells whether two states consist of the same files, byte for byte, without decoding a row.

A batch that runs again from the same state usually writes the same bytes. Then the two states are
equal; otherwise their rows have to be compared.
"""

from __future__ import annotations

from pathlib import Path

from floodmark.checkpoint.relative_path import RelativePath
from floodmark.statestore.store import StoreAt
from floodmark.statestore.view import StateView
from floodmark.storage.files import plain_path


def have_same_bytes(one: StateView, other: StateView) -> bool:
    """Whether both are read in the same way from files with the same names and bytes.

    Raise an error if a file of either is missing. RocksDB's tables are not read: a snapshot names
    them by unique names.
    """
    if one.counts_at is not None or other.counts_at is not None:
        return False  # a join's counts are files of a second store
    if _reading(one) != _reading(other):
        return False
    return all(_same_partition(one.at, other.at, partition) for partition in one.partitions)


def _reading(view: StateView) -> tuple[object, ...]:
    """Return everything that decides what the bytes mean."""
    at = view.at
    return (
        view.partitions,
        view.reading,
        view.avro,
        view.written,
        at.provider,
        at.row_checksums,
        at.delimiter,
    )


def _same_partition(one: StoreAt, other: StoreAt, partition: int) -> bool:
    mine, others = one.chain(partition), other.chain(partition)
    paths = [file.path for file in mine.files]
    if paths != [file.path for file in others.files]:
        return False
    # The newest file first: it is the one that may differ.
    return all(_same_file(one, other, path) for path in reversed(paths))


def _same_file(one: StoreAt, other: StoreAt, path: str) -> bool:
    mine, others = (plain_path(at.files, RelativePath(path)) for at in (one, other))
    if mine is not None and others is not None and Path(mine).samefile(others):
        return True  # a fork on the same disk links what it does not change
    return one.read(path) == other.read(path)
