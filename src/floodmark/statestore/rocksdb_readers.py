"""Runs processes that read RocksDB databases for this process, each one at a time.

A forged snapshot may end its reader or keep it busy forever; here that is an error like any other.
Readers also use more cores: RocksDB returns one pair at a time, and one Python process uses only
one core for that.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import select
import signal
import sys
import threading
import time
from array import array
from collections.abc import Iterator
from typing import TYPE_CHECKING

from floodmark import limits
from floodmark.errors import CannotRead, FloodmarkError, MalformedFile, OverLimit
from floodmark.statestore import rocksdb_pairs as asked_of
from floodmark.statestore.rocksdb_pairs import ALIVE, ASKED, FAILED, PIECE, Pairs

if TYPE_CHECKING:
    from subprocess import Popen

_PIPE = 1 << 20
_MOST_KEPT = 8


def records(place: str) -> Iterator[Pairs]:
    """Yield all pairs of the database in a folder. Several databases may be read at the same
    time.
    """
    return _answers(asked_of.RECORDS, place)


def value(place: str, key: bytes) -> bytes | None:
    found = [pairs.parts[0] for pairs in _answers(asked_of.VALUE, place, key)]
    return found[0] if found else None


def first(place: str, to_the_end: bool) -> Pairs:
    """Return the first pairs; with `to_the_end` all later pairs are checked, too."""
    what = asked_of.TO_THE_END if to_the_end else asked_of.FIRST
    return next(iter(list(_answers(what, place))), Pairs(array("i"), []))


def close(place: str) -> None:
    """Make every reader close the database, because its folder is about to be removed."""
    _readers().close(place)


def start_one() -> None:
    """Start a reader early, so that it is ready when it is needed."""
    readers = _readers()
    readers.give(readers.take(""))


def _answers(what: bytes, place: str, key: bytes = b"") -> Iterator[Pairs]:
    readers = _readers()
    reader = readers.take(place)
    done = False
    try:
        yield from reader.answers(what, place, key)
        done = True
    except RuntimeError:
        done = True  # the error is RocksDB's own: the reader still works
        raise
    finally:
        # A reader with unread answers would give them to the next caller.
        if done:
            readers.give(reader)
        else:
            reader.end()


class _Reader:
    def __init__(self) -> None:
        self.place = ""
        self._process = _start()

    def answers(self, what: bytes, place: str, key: bytes) -> Iterator[Pairs]:
        self.place = place
        self._ask(what, place, key)
        while True:
            count, size = PIECE.unpack(self._exactly(PIECE.size))
            if count == FAILED:
                raise RuntimeError(self._exactly(size).decode())
            if count == ALIVE:
                continue
            if count == 0:
                return
            lengths = array("i")
            lengths.frombytes(self._exactly(count * lengths.itemsize))
            yield Pairs(lengths, [bytes(self._exactly(size))])

    def close(self) -> None:
        with contextlib.suppress(FloodmarkError):
            self._ask(asked_of.CLOSE, self.place, b"")
        self.place = ""

    def end(self) -> None:
        self._process.kill()
        self._process.communicate()

    def _ask(self, what: bytes, place: str, key: bytes) -> None:
        assert self._process.stdin is not None
        name = place.encode()
        try:
            self._process.stdin.write(ASKED.pack(what, len(name), len(key)) + name + key)
        except BrokenPipeError:
            raise self._ended() from None

    def _exactly(self, size: int) -> bytearray:
        assert self._process.stdout is not None
        seconds = limits.current().of("seconds")
        pipe = self._process.stdout.fileno()
        found, at = bytearray(size), 0
        until = time.monotonic() + seconds
        while at < size:
            ready, _, _ = select.select([pipe], [], [], max(0.0, until - time.monotonic()))
            if not ready:
                raise _never_ends(seconds)
            read = os.readv(pipe, [memoryview(found)[at:]])
            if not read:
                raise self._ended()
            at += read
            until = time.monotonic() + seconds
        return found

    def _ended(self) -> CannotRead | MalformedFile:
        status = self._process.wait()
        if status == -signal.SIGKILL:
            return CannotRead(
                "the process that reads the snapshot has ended too early",
                "The system ends processes when memory runs out.",
                "Try again with more memory, or read one partition at a time: --partition.",
            )
        with contextlib.suppress(ValueError):
            ended = signal.Signals(-status).name
            return MalformedFile(f"RocksDB ended the process that read the snapshot ({ended})")
        return MalformedFile(f"the process that read the snapshot ended with status {status}")


class _Readers:
    """The free readers; a caller owns the reader that it has taken."""

    def __init__(self) -> None:
        self.owner = os.getpid()
        self._free: list[_Reader] = []
        self._lock = threading.Lock()

    def take(self, place: str) -> _Reader:
        """Return the reader with this database open, another free one, or a new one."""
        with self._lock:
            for index, reader in enumerate(self._free):
                if reader.place == place:
                    return self._free.pop(index)
            if self._free:
                return self._free.pop()
        return _Reader()

    def give(self, reader: _Reader) -> None:
        with self._lock:
            if len(self._free) < _MOST_KEPT:
                self._free.append(reader)
                return
        reader.end()

    def close(self, place: str) -> None:
        with self._lock:
            for reader in self._free:
                if reader.place == place:
                    reader.close()

    def end(self) -> None:
        if self.owner != os.getpid():
            return  # they belong to the process that this one was forked from
        with self._lock:
            for reader in self._free:
                reader.end()
            self._free = []


_kept: list[_Readers] = []


def _readers() -> _Readers:
    if not _kept or _kept[0].owner != os.getpid():
        _kept[:] = [_Readers()]
        atexit.register(_kept[0].end)
    return _kept[0]


def _start() -> Popen[bytes]:
    import subprocess

    # The child imports from the same paths as this process, but without `site`, which is slow.
    code = f"import sys; sys.path[:] = {sys.path!r}; import {asked_of.__name__} as it; it.serve()"
    try:
        return subprocess.Popen(  # nosec B603 # a module of this package, without a shell
            [sys.executable, "-S", "-c", code],
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            pipesize=_PIPE,
        )
    except OSError as error:
        raise CannotRead(
            f"RocksDB needs its own process, but the system does not start one: {error.strerror}",
            "A damaged or forged snapshot may end the process that opens it.",
            "End other processes, or raise the limit on processes (`ulimit -u`).",
        ) from None


def _never_ends(seconds: int) -> OverLimit:
    """Return an error that is not damage: on a busy machine a sound snapshot can take that long."""
    return OverLimit(
        f"RocksDB has not answered for {seconds} seconds",
        "A damaged or forged snapshot can cause this. So can storage that does not answer, or a "
        "very busy machine.",
        f"If the snapshot is sound, wait longer: floodmark --raise-limit seconds={10 * seconds} …",
    )
