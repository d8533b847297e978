"""Opens a RocksDB snapshot, read-only, in a temporary folder.

Its files are put together there under the names that the database knows them by.
"""

from __future__ import annotations

import contextlib
import re
import tempfile
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from floodmark.checkpoint.relative_path import RelativePath
from floodmark.checkpoint.state_errors import table_cut, table_missing
from floodmark.checkpoint.text import shorten
from floodmark.errors import CannotRead, FloodmarkError, MalformedFile
from floodmark.state.files.records import Records
from floodmark.state.files.rocksdb import NOTHING, Base, RocksSnapshot
from floodmark.state.files.rocksdb_log import require_whole_log
from floodmark.state.files.sstable import FOOTER_SIZE, require_footer_inside
from floodmark.state.rows.rowbytes import RowBytes, as_bytes, starts_of
from floodmark.statestore import rocksdb_readers
from floodmark.statestore.rocksdb_pairs import Pairs
from floodmark.storage.files import Files, plain_path

_ELSEWHERE = "Choose another batch with --batch, or restore the file from a backup."
# The names that Spark puts into a snapshot. All others are left out, above all rocksdict's own:
# in rocksdict-config.json a stranger could request unpickling of values, and so run code here.
_IN_SNAPSHOT = re.compile(r"CURRENT|IDENTITY|(MANIFEST|OPTIONS)-\d{1,20}|\d{1,20}\.log")
_TABLE, _LOG = re.compile(r"\d{1,20}\.sst"), re.compile(r"\d{1,20}\.log")
_BYTES_ONLY = b'{"raw_mode":true,"prefix_extractors":{}}'
# Reading needs no options of the whole database, and some of them name folders to write to.
_DATABASE_OPTIONS = re.compile(rb"^\[DBOptions\][^\[]*", re.MULTILINE)
_LINE_WITH_PATH = re.compile(rb"^[^\[\n]*[/\\][^\n]*\n?", re.MULTILINE)


@contextlib.contextmanager
def opened(files: Files, folder: str, snapshot: RocksSnapshot, delimiter: bytes) -> Iterator[Base]:
    if not snapshot.tables and not snapshot.logs:
        yield NOTHING
        return
    with _database(files, folder, snapshot, delimiter) as database:
        yield Base(database.records, database.get)


def read_through(files: Files, folder: str, snapshot: RocksSnapshot, to_the_end: bool) -> Records:
    """Return the first pairs; RocksDB checks every block that it reads, up to the end on
    request.
    """
    if not snapshot.tables and not snapshot.logs:
        return _records(Pairs(array("i"), []))
    with _database(files, folder, snapshot, b",") as database:
        return database.first(to_the_end)


@contextlib.contextmanager
def _database(
    files: Files, folder: str, snapshot: RocksSnapshot, delimiter: bytes
) -> Iterator[_Database]:
    rocksdb_readers.start_one()
    with tempfile.TemporaryDirectory(prefix="floodmark-state-") as place:
        _put_together(files, folder, snapshot, Path(place), delimiter)
        try:
            yield _Database(place, folder, snapshot)
        finally:
            rocksdb_readers.close(place)


@dataclass(frozen=True)
class _Database:
    place: str
    folder: str
    snapshot: RocksSnapshot

    def records(self) -> Iterator[Records]:
        with self._named():
            for pairs in rocksdb_readers.records(self.place):
                yield _records(pairs)

    def get(self, key: bytes) -> bytes | None:
        with self._named():
            return rocksdb_readers.value(self.place, key)

    def first(self, to_the_end: bool) -> Records:
        with self._named():
            return _records(rocksdb_readers.first(self.place, to_the_end))

    @contextlib.contextmanager
    def _named(self) -> Iterator[None]:
        """Translate the local file names in RocksDB's errors to the checkpoint's names."""
        try:
            yield
        except FloodmarkError:
            raise
        except Exception as error:
            said = str(error).replace(f"{self.place}/", "")
            for table in self.snapshot.tables:
                said = said.replace(table.local, f"SSTs/{table.stored}")
            raise MalformedFile(
                f"{self.folder}: RocksDB cannot read the snapshot: {said}", do=_ELSEWHERE
            ) from None


def _put_together(
    files: Files, folder: str, snapshot: RocksSnapshot, place: Path, delimiter: bytes
) -> None:
    for name, content in snapshot.files.items():
        if not _IN_SNAPSHOT.fullmatch(name):
            continue
        if name.startswith("MANIFEST-"):
            require_whole_log(f"{folder}: {name}", content)
        if name.startswith("OPTIONS-"):
            content = _with_delimiter(_without_places(content), delimiter)
        (place / name).write_bytes(content)
    for table in snapshot.tables:
        target = _in_database(place, table.local, _TABLE)
        path = f"{folder}/SSTs/{table.stored}"
        _bring(files, path, target, table.size)
        with target.open("rb") as opened:
            opened.seek(max(0, table.size - FOOTER_SIZE))
            require_footer_inside(path, opened.read(FOOTER_SIZE), table.size)
    for log in snapshot.logs:
        target = _in_database(place, log.local, _LOG)
        _bring(files, f"{folder}/logs/{log.stored}", target, log.size)
    (place / "rocksdict-config.json").write_bytes(_BYTES_ONLY)


def _in_database(place: Path, name: str, kind: re.Pattern[str]) -> Path:
    if not kind.fullmatch(name):
        raise MalformedFile(
            f"the snapshot calls a file {shorten(name)!r}, but RocksDB does not use such names"
        )
    target = place / name
    if target.is_symlink() or target.exists():
        raise MalformedFile(f"the snapshot names {name} twice")
    return target


def _without_places(options: bytes) -> bytes:
    """Return only the options of column families, without paths to which RocksDB would write."""
    return _LINE_WITH_PATH.sub(b"", _DATABASE_OPTIONS.sub(b"[DBOptions]\n\n", options))


def _with_delimiter(options: bytes, delimiter: bytes) -> bytes:
    """Restore Spark's delimiter, because RocksDB stores its merge operator only by name."""
    operator = b"merge_operator={id=StringAppendOperator;delimiter=" + delimiter + b";}"
    return re.sub(rb"merge_operator=\{?(id=)?StringAppendOperator.*", lambda _: operator, options)


def _bring(files: Files, source: str, target: Path, size: int) -> None:
    plain = plain_path(files, RelativePath(source))
    if plain is not None:
        # RocksDB never writes to a table, so a link is enough.
        local = Path(plain).absolute()
        _check_size(source, local.stat().st_size, size)
        target.symlink_to(local)
        return
    try:
        content = files.read(RelativePath(source))
    except CannotRead as error:
        raise table_missing(source) from error
    _check_size(source, len(content), size)
    target.write_bytes(content)


def _check_size(source: str, found: int, size: int) -> None:
    if found != size:
        raise table_cut(source, found, size)


def _records(pairs: Pairs) -> Records:
    import numpy as np

    lengths = np.frombuffer(pairs.lengths, np.int32).astype(np.int64)
    data, starts = as_bytes(b"".join(pairs.parts)), starts_of(lengths)
    return Records(
        RowBytes(data, starts[::2], lengths[::2]),
        RowBytes(data, starts[1::2], lengths[1::2]),
        np.zeros(len(lengths) // 2, bool),
    )
