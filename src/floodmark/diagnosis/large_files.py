"""Checks large files on a local disk in pieces, for `doctor --read-data`.

A piece fits into a processor's cache. While the system reads the next one, it is summed, and
unpacked if no checksum beside the file vouches for it. So nothing large is held, and the disk does
not wait. This module can only say that a file is sound. Any other file is read again as a whole, to
say what is wrong.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from floodmark.checkpoint.checksums.sidefiles import can_join, crc_over, whole_sum
from floodmark.checkpoint.layout import StateFile, checksum_file, side_file
from floodmark.diagnosis.store import gather_checksum
from floodmark.errors import FloodmarkError
from floodmark.state.files.compression import Lz4Walk
from floodmark.state.files.soundness import TAIL, Content, check_end
from floodmark.state.files.sstable import TableWalk, table_walk

if TYPE_CHECKING:
    from floodmark.diagnosis.facts import Gathering

LARGE = 1 << 18
"""The size in bytes from which a file is read in pieces."""
_PIECE = 1 << 20
_Walk = Lz4Walk | TableWalk


class LargeFiles:
    """Reads the large files of a checkpoint, all through one buffer."""

    def __init__(self, found: Gathering) -> None:
        self._found = found
        self._piece = memoryview(bytearray(_PIECE))

    def content(self, file: StateFile) -> Content | None:
        """Return both ends of a sound delta, snapshot or changelog; None for all others."""
        found = self._found
        if file.kind == "zip" or file.path in found.faults or file.path in found.checksums:
            return None
        place = self._place(file.path)
        if place is None:
            return None
        sums = self._sums(file)
        if sums is None:
            return None
        walk = Lz4Walk(vouched=bool(sums))
        try:
            if not _read(place, file.size, self._piece, sums, walk) or not walk.ended:
                return None
            content = Content(walk.head or b"", walk.tail(TAIL))
            check_end(content, file.kind)
        except FloodmarkError:
            return None
        return content

    def agrees(self, path: str) -> bool:
        """Whether the bytes of a file match its existing side file."""
        place = self._place(path)
        expected = self._side_sum(path) if place else None
        return bool(
            place
            and expected is not None
            and _read(place, self._found.sizes[path], self._piece, [_Sum(crc_over(), expected)])
        )

    def is_sound_table(self, path: str) -> bool:
        """Whether the checksum of every block of a RocksDB table matches."""
        place, size = self._found.files.plain_path(path), self._found.sizes.get(path, 0)
        if place is not None:
            walk = _table_on_disk(place, size)
            return bool(walk and _read(place, size, self._room_for(walk), [], walk) and walk.fits)
        try:
            data = self._found.files.read(path)
        except FloodmarkError:
            return False
        walk = table_walk(len(data), lambda at, count: data[at : at + count])
        return bool(walk and walk.take(memoryview(data)) == len(data) == size and walk.fits)

    def _room_for(self, walk: TableWalk) -> memoryview:
        """Return a buffer that holds a whole block; a large table's filter has megabytes."""
        enough = 2 * walk.longest
        return self._piece if enough <= _PIECE else memoryview(bytearray(enough))

    def _place(self, path: str) -> str | None:
        return self._found.files.plain_path(path) if self._found.sizes[path] >= LARGE else None

    def _sums(self, file: StateFile) -> list[_Sum] | None:
        """Return the checksums beside a file; None if one of them cannot be used."""
        sums = []
        if side_file(file.path) in self._found.sizes:
            expected = self._side_sum(file.path)
            if expected is None:
                return None
            sums.append(_Sum(crc_over(), expected))
        if checksum_file(file.path) in self._found.sizes:
            expected = self._spark_sum(checksum_file(file.path))
            if expected is None:
                return None
            sums.append(_Sum(_crc32c, expected))
        return sums

    def _side_sum(self, path: str) -> int | None:
        if not can_join():
            return None
        try:
            return whole_sum(self._found.files.read(side_file(path)), self._found.sizes[path])
        except FloodmarkError:
            return None

    def _spark_sum(self, path: str) -> int | None:
        data = self._found.files.read_many([path])[path]
        value = (
            None if isinstance(data, FloodmarkError) else gather_checksum(self._found, path, data)
        )
        return None if value is None else value & 0xFFFFFFFF


class _Sum:
    """A checksum that grows with the pieces, and its expected value."""

    def __init__(self, add: Callable[..., int], expected: int) -> None:
        self._add, self._expected, self._value = add, expected, 0

    def take(self, piece: memoryview) -> None:
        self._value = self._add(piece, self._value)

    @property
    def fits(self) -> bool:
        return self._value == self._expected


def _table_on_disk(place: str, size: int) -> TableWalk | None:
    try:
        descriptor = os.open(place, os.O_RDONLY)
    except OSError:
        return None
    try:
        return table_walk(size, lambda at, count: os.pread(descriptor, count, at))
    except OSError:
        return None
    finally:
        os.close(descriptor)


def _crc32c(piece: memoryview, value: int) -> int:
    import google_crc32c
    import numpy as np

    # `extend` accepts no memoryview, and a copy would cost as much as the sum.
    return int(google_crc32c.extend(value, np.frombuffer(piece, np.uint8)))


def _read(
    place: str, size: int, buffer: memoryview, sums: list[_Sum], walk: _Walk | None = None
) -> bool:
    """Whether the file has its size and every sum matches."""
    try:
        descriptor = os.open(place, os.O_RDONLY)
    except OSError:
        return False
    total = kept = 0
    try:
        while count := os.readv(descriptor, [buffer[kept:]]):
            for item in sums:
                item.take(buffer[kept : kept + count])
            total += count
            kept = _left(walk, buffer[: kept + count])
            if kept == len(buffer):
                return False  # one block is larger than the buffer
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return total == size and all(item.fits for item in sums)


def _left(walk: _Walk | None, piece: memoryview) -> int:
    """Return how many bytes must come again; they are moved to the front."""
    if walk is None:
        return 0
    used = walk.take(piece)
    left = len(piece) - used
    piece[:left] = piece[used:]
    return left
