"""Opens a RocksDB snapshot: its files are put together in a temporary folder, under the
names that the database knows them by, and opened read-only.
"""

from __future__ import annotations

import contextlib
import itertools
import re
import tempfile
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from floodmark.errors import CannotRead, MalformedFile
from floodmark.state.records import Records
from floodmark.state.rocksdb import Base, RocksSnapshot
from floodmark.state.rowbytes import row_bytes
from floodmark.storage.files import Files, local_path
from floodmark.storage.state_chain import StateFileMissing

_ELSEWHERE = "Choose another batch with --batch, or restore the file from a backup."
_PIECE = 50_000
_FIRST = 1_000
NOTHING = Base(lambda: iter(()), lambda key: None)


@contextlib.contextmanager
def opened(files: Files, folder: str, snapshot: RocksSnapshot, delimiter: bytes) -> Iterator[Base]:
    if not snapshot.tables and not snapshot.logs:
        yield NOTHING
        return
    with tempfile.TemporaryDirectory(prefix="floodmark-state-") as place:
        _put_together(files, folder, snapshot, Path(place), delimiter)
        database = _open(place, folder)
        try:
            yield Base(lambda: _pairs(database, folder), database.get)
        finally:
            database.close()


def read_through(files: Files, folder: str, snapshot: RocksSnapshot, to_the_end: bool) -> Records:
    """The first pairs; RocksDB checks every block that it reads, and reads all if it is told to."""
    if not snapshot.tables and not snapshot.logs:
        return _records([], [])
    with tempfile.TemporaryDirectory(prefix="floodmark-state-") as place:
        _put_together(files, folder, snapshot, Path(place), b",")
        database = _open(place, folder)
        try:
            first = list(itertools.islice(database.items(), _FIRST))
            if to_the_end:
                deque(database.keys(), maxlen=0)
        except Exception as error:
            raise _unreadable(folder, error) from None
        finally:
            database.close()
    return _records([key for key, _ in first], [value for _, value in first])


def _put_together(
    files: Files, folder: str, snapshot: RocksSnapshot, place: Path, delimiter: bytes
) -> None:
    for name, content in snapshot.files.items():
        if name.startswith("OPTIONS-"):
            content = _with_delimiter(content, delimiter)
        (place / name).write_bytes(content)
    for table in snapshot.tables:
        _bring(files, f"{folder}/SSTs/{table.stored}", place / table.local, table.size)
    for log in snapshot.logs:
        _bring(files, f"{folder}/logs/{log.stored}", place / log.local, log.size)


def _with_delimiter(options: bytes, delimiter: bytes) -> bytes:
    """RocksDB writes down its merge operator by name alone, so Spark's delimiter is lost."""
    operator = b"merge_operator={id=StringAppendOperator;delimiter=" + delimiter + b";}"
    return re.sub(rb"merge_operator=\{?(id=)?StringAppendOperator.*", lambda _: operator, options)


def _bring(files: Files, source: str, target: Path, size: int) -> None:
    root = local_path(files.root)
    local = Path(root, source).absolute() if root is not None else None
    if local is not None and local.is_file():
        # RocksDB never writes to a table: a link saves the copy.
        _check_size(source, local.stat().st_size, size)
        target.symlink_to(local)
        return
    try:
        content = files.read(source)
    except CannotRead as error:
        raise StateFileMissing(
            f"{source} is missing",
            "The snapshot names it, and the folder lacks it.",
            "Restore the file from a backup, or choose a batch that does not need it.",
        ) from error
    _check_size(source, len(content), size)
    target.write_bytes(content)


def _check_size(source: str, found: int, size: int) -> None:
    if found != size:
        raise MalformedFile(
            f"{source} has {found} bytes; the snapshot says {size}",
            "The file is cut short, or belongs to another snapshot.",
            _ELSEWHERE,
        )


def _open(place: str, folder: str) -> Any:
    import rocksdict

    try:
        # The database's own options name its merge operator, which lists need.
        options, families = rocksdict.Options.load_latest(place)
        return rocksdict.Rdict(
            place,
            options=options,
            column_families=families,
            access_type=rocksdict.AccessType.read_only(),
        )
    except Exception as error:
        raise MalformedFile(
            f"{folder}: RocksDB cannot open the snapshot: {error}", do=_ELSEWHERE
        ) from None


def _pairs(database: Any, folder: str) -> Iterator[Records]:
    pairs = iter(database.items())
    while True:
        keys: list[bytes] = []
        values: list[bytes] = []
        try:
            # One pair at a time: pairs that are kept make the collector look at them all.
            for key, value in itertools.islice(pairs, _PIECE):
                keys.append(key)
                values.append(value)
        except Exception as error:
            raise _unreadable(folder, error) from None
        if not keys:
            return
        yield _records(keys, values)


def _records(keys: list[bytes], values: list[bytes]) -> Records:
    import numpy as np

    return Records(row_bytes(keys), row_bytes(values), np.zeros(len(keys), bool))


def _unreadable(folder: str, error: Exception) -> MalformedFile:
    return MalformedFile(f"{folder}: RocksDB cannot read the snapshot: {error}", do=_ELSEWHERE)
