"""The pairs of a RocksDB database, many at a time.

Readers are processes beside this one, so that several partitions are read at once: RocksDB
gives out one pair at a time, and a Python process takes them on one core only. Their start
counts, so next to nothing is imported here.
"""

from __future__ import annotations

import contextlib
import itertools
import struct
import sys
from array import array
from collections.abc import Iterator
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from floodmark.errors import CannotRead

if TYPE_CHECKING:
    from subprocess import Popen

_HEADER = struct.Struct("<qq")
"""How many lengths follow, and how many bytes; -1 lengths is the text of an error."""
_FAILED = -1
_PIPE = 1 << 20
_AT_ONCE = 5_000
"""Pairs that are gathered before they are joined: so many stay in the processor's cache."""
_JOINED = 10


class Pairs(NamedTuple):
    """Keys and values in turn."""

    lengths: array[int]
    parts: list[bytes]


def open_database(place: str) -> Any:
    import rocksdict

    # The database's own options name its merge operator, which lists need.
    options, families = rocksdict.Options.load_latest(place)
    return rocksdict.Rdict(
        place,
        options=options,
        column_families=families,
        access_type=rocksdict.AccessType.read_only(),
    )


def pairs_of(database: Any) -> Iterator[Pairs]:
    pairs, last, joined = iter(database.items()), None, 1
    while True:
        lengths, parts = array("i"), []
        for _ in range(joined):
            flat = list(itertools.chain.from_iterable(itertools.islice(pairs, _AT_ONCE)))
            lengths.extend(array("i", list(map(len, flat))))
            parts.append(b"".join(flat))
            last = flat[-2] if flat else last
        if not lengths:
            check_end(database, last)
            return
        yield Pairs(lengths, parts)
        joined = _JOINED  # the first come soon: who waits for them may ask another reader then


def check_end(database: Any, last: bytes | None) -> None:
    """Raises what RocksDB met behind the last key: its pairs end at damage as they do at the end.

    Only the status of an iterator that stands there tells the two apart.
    """
    place = database.iter()
    if last is None:
        place.seek_to_first()
    else:
        place.seek(last)
        if place.valid():
            place.next()
    place.status()
    if place.valid():
        raise RuntimeError("its pairs ended before the last one")


class Readers:
    """Processes that read databases, each one at a time. They start when the first is asked."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._started: list[Popen[bytes]] | None = None
        self._free: list[Popen[bytes]] = []

    def pairs(self, place: str) -> Iterator[Pairs]:
        """The pairs of the database in a folder; as many may be under way as there are readers."""
        if self._started is None:
            self._start()
        if not self._free:  # the system gives no more processes
            yield from pairs_of(open_database(place))
            return
        reader = self._free.pop()
        assert reader.stdin is not None
        assert reader.stdout is not None
        reader.stdin.write(place.encode() + b"\n")
        reader.stdin.flush()
        yield from _parsed(reader.stdout)
        self._free.append(reader)

    def _start(self) -> None:
        self._started = []
        with contextlib.suppress(OSError):
            for _ in range(self.count):
                self._started.append(_start_reader())
        self._free = list(self._started)

    def close(self) -> None:
        for reader in self._started or ():
            reader.kill()
            reader.communicate()


def _start_reader() -> Popen[bytes]:
    import subprocess

    # The same modules as here, wherever this process found them.
    code = f"import sys; sys.path[:] = {sys.path!r}; import {__name__} as it; it.serve()"
    return subprocess.Popen(  # nosec B603 # this very module, without a shell
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        pipesize=_PIPE,
    )


def serve() -> None:
    """What a reader does: folders come in, a line each, and pairs go out."""
    for line in sys.stdin.buffer:
        try:
            _send(line[:-1].decode())
        except BrokenPipeError:
            return


def _send(place: str) -> None:
    out = sys.stdout.buffer
    try:
        for lengths, parts in pairs_of(open_database(place)):
            out.write(_HEADER.pack(len(lengths), sum(map(len, parts))))
            out.write(lengths)
            out.writelines(parts)
        out.write(_HEADER.pack(0, 0))
    except BrokenPipeError:
        raise
    except Exception as error:
        said = str(error).encode()
        out.write(_HEADER.pack(_FAILED, len(said)) + said)
    out.flush()


def _parsed(stream: IO[bytes]) -> Iterator[Pairs]:
    while True:
        count, size = _HEADER.unpack(_exactly(stream, _HEADER.size))
        if count == _FAILED:
            raise RuntimeError(bytes(_exactly(stream, size)).decode())
        if count == 0:
            return
        lengths = array("i")
        lengths.frombytes(_exactly(stream, count * lengths.itemsize))
        yield Pairs(lengths, [_exactly(stream, size)])


def _exactly(stream: IO[bytes], size: int) -> bytes:
    content = stream.read(size)
    if len(content) != size:
        raise CannotRead(
            "the process that reads the snapshot has ended before its time",
            "The system ends processes when memory runs out.",
            "Try again with more memory, or partition by partition: --partition.",
        )
    return content
