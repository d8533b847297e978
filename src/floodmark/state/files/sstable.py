"""Are the blocks of a RocksDB table whole? Each has a checksum, and an index leads to all of them.

RocksDB would check the same while it gives out every pair, one by one: many times as long.
Only that all is well is told here. Of any other table, and of forms that Spark does not write by
itself (a partitioned index, format 6, an index packed by zstd), RocksDB says it.

    data blocks, filter, index, properties, metaindex      each followed by its trailer
    footer: checksum type, handles of metaindex and index, format, magic
    trailer: how the block is packed (1 byte), checksum (4 bytes)
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from floodmark.errors import MalformedFile
from floodmark.state.rows.rowbytes import gather

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Numbers = NDArray[np.int64]
    Checksums = Callable[[memoryview, Numbers, Numbers], NDArray[np.uint32]]
    """Of the blocks from here to there, each with the byte after it."""

_FOOTER = struct.Struct("<B40sIQ")
_MAGIC = 0x88E241B785F4CFF7
_FORMATS = (2, 3, 4, 5)
_TRAILER = 5
_INDEX_TYPE = b"rocksdb.block.based.table.index.type"
_DELTAS = b"rocksdb.index.value.is.delta.encoded"
_PROPERTIES = b"rocksdb.properties"
_PLAIN, _SNAPPY, _LZ4, _LZ4HC = 0, 1, 4, 5
_CRC32C, _XXH3 = 1, 4
_MOST = 32 << 20
"""Bytes of a block that leads to others: an index has some dozen for each 4 KiB of a table."""
_LONGEST_BLOCK = 256 << 20
_Handle = tuple[int, int]
_Read = Callable[[int, int], bytes]


class _Unknown(Exception):
    """Not damaged for sure, and not sound for sure."""


FOOTER_SIZE = _FOOTER.size


def require_footer_inside(name: str, footer: bytes, size: int) -> None:
    """Refuses a table whose end leads out of it: RocksDB would ask for memory of any size, and
    end the process where it gets none. Other formats are RocksDB's to refuse.
    """
    if len(footer) < _FOOTER.size:
        return
    _, handles, version, magic = _FOOTER.unpack(footer)
    if magic != _MAGIC or version not in _FORMATS:
        return
    try:
        at, metaindex = _handle(handles, 0)
        _, index = _handle(handles, at)
    except (_Unknown, IndexError):
        metaindex = index = (size, 0)
    end = size - _FOOTER.size
    if any(start + length + _TRAILER > end for start, length in (metaindex, index)):
        raise MalformedFile(
            f"{name}: the end of this RocksDB table leads out of it",
            "The table is damaged.",
            "Restore it from a backup; `floodmark repair` says what else can be done.",
        )


class TableWalk:
    """A table that comes in pieces, once its end has led to its blocks."""

    def __init__(self, sizes: Numbers, checksums: Checksums) -> None:
        """`sizes` of the blocks, which follow each other from the beginning."""
        self._after = (sizes + _TRAILER).cumsum()
        self._sizes = sizes
        self._checksums = checksums
        self._done = 0
        self._at = 0
        self._sound = True

    def take(self, piece: memoryview) -> int:
        """How many bytes were used; the others have to come again before the next piece."""
        first, used = self._done, 0
        self._done = int(self._after.searchsorted(self._at + len(piece), "right"))
        if self._done > first:
            after = self._after[first : self._done] - self._at
            ends, used = after - _TRAILER, int(after[-1])
            found = self._checksums(piece, ends - self._sizes[first : self._done], ends)
            self._sound &= bool((found == _written(piece, ends)).all())
            self._at += used
        # After the last block comes the footer, which has led here.
        return len(piece) if self._done == len(self._sizes) else used

    @property
    def fits(self) -> bool:
        """Every block has come, with the checksum that it was written with."""
        return self._sound and self._done == len(self._sizes)

    @property
    def longest(self) -> int:
        return int(self._sizes.max()) + _TRAILER


def table_walk(size: int, read: _Read) -> TableWalk | None:
    """None where a table's end does not lead to blocks that fill it. `read`: from, how many."""
    try:
        return _table_walk(size, read)
    except (_Unknown, ValueError, LookupError, struct.error, RuntimeError):
        return None


def _table_walk(size: int, read: _Read) -> TableWalk:
    import numpy as np

    end = size - _FOOTER.size
    if end < 0:
        raise _Unknown
    kind, handles, version, magic = _FOOTER.unpack(read(end, _FOOTER.size))
    at, metaindex = _handle(handles, 0)
    at, index = _handle(handles, at)
    if magic != _MAGIC or version not in _FORMATS or any(handles[at:]):
        raise _Unknown
    checksums = _checksums_of(kind)
    meta = dict(_pairs(_content(read, metaindex, end, checksums)))
    about = {name: _handle(value, 0)[1] for name, value in meta.items()}
    properties = dict(_pairs(_content(read, about[_PROPERTIES], end, checksums)))
    data_end = min([metaindex, index, *about.values()])[0]
    sizes = _data_sizes(_content(read, index, end, checksums), properties, data_end)
    at = data_end
    for start, length in sorted([metaindex, index, *about.values()]):
        if start != at:
            raise _Unknown
        at = start + length + _TRAILER
        sizes = np.append(sizes, length)
    if at != end or int(sizes.max()) > _LONGEST_BLOCK:
        raise _Unknown
    return TableWalk(sizes, checksums)


def _written(table: memoryview, ends: Numbers) -> NDArray[np.uint32]:
    import numpy as np

    return gather(np.frombuffer(table, np.uint8), ends + 1, "<u4")


def _checksums_of(kind: int) -> Checksums:
    """Spark 3.5 has the first, later ones the second; the others are RocksDB's to check."""
    if kind == _CRC32C:
        return _masked_crc32c
    if kind == _XXH3:
        return _xxh3
    raise _Unknown


def _masked_crc32c(table: memoryview, starts: Numbers, ends: Numbers) -> NDArray[np.uint32]:
    import google_crc32c
    import numpy as np

    value, octets = google_crc32c.value, np.frombuffer(table, np.uint8)
    places = zip(starts.tolist(), (ends + 1).tolist(), strict=True)
    found = np.array([value(octets[start:end]) for start, end in places], np.uint32)
    # Rotated and moved, so that a checksum of checksums is none.
    return (found >> np.uint32(15) | found << np.uint32(17)) + np.uint32(0xA282EAD8)


def _xxh3(table: memoryview, starts: Numbers, ends: Numbers) -> NDArray[np.uint32]:
    import numpy as np
    import xxhash

    digest = xxhash.xxh3_64_intdigest
    places = zip(starts.tolist(), ends.tolist(), strict=True)
    found = np.array([digest(table[start:end]) for start, end in places], np.uint64)
    packed = np.frombuffer(table, np.uint8)[ends].astype(np.uint32)
    return found.astype(np.uint32) ^ packed * np.uint32(0x6B9083D9)


def _content(read: _Read, block: _Handle, end: int, checksums: Checksums) -> bytes:
    """A block that leads to others, unpacked; its checksum first, lest garbage be followed."""
    import numpy as np

    start, size = block
    if start + size + _TRAILER > end or size > _MOST:
        raise _Unknown
    data = memoryview(read(start, size + _TRAILER))
    whole = np.array([size])
    if checksums(data, whole - size, whole) != _written(data, whole):
        raise _Unknown
    return _unpacked(data[:size], data[size])


def _unpacked(block: memoryview, packed: int) -> bytes:
    if packed == _PLAIN:
        return bytes(block)
    if packed == _SNAPPY:
        import cramjam

        try:
            if cramjam.snappy.decompress_raw_len(block) > _MOST:
                raise _Unknown
            return bytes(cramjam.snappy.decompress_raw(block))
        except cramjam.DecompressionError:
            raise _Unknown from None
    at, length = _varint(block, 0)
    if packed not in (_LZ4, _LZ4HC) or length > _MOST:
        raise _Unknown
    import lz4.block

    try:
        return bytes(lz4.block.decompress(block[at:], uncompressed_size=length))
    except lz4.block.LZ4BlockError:
        raise _Unknown from None


def _restarts(block: bytes) -> Numbers:
    """Where keys stand in full; after the last entry, their places and how many they are."""
    import numpy as np

    (count,) = struct.unpack_from("<I", block, len(block) - 4)
    end = len(block) - 4 * (count + 1)
    if end < 0 or not count:
        raise _Unknown
    return np.append(np.frombuffer(block, "<u4", count, end), end).astype(np.int64)


def _pairs(block: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Keys share their beginning with the key before."""
    at, end, key = 0, int(_restarts(block)[-1]), b""
    while at < end:
        at, shared = _varint(block, at)
        at, own = _varint(block, at)
        at, length = _varint(block, at)
        key = key[:shared] + block[at : at + own]
        at += own
        yield key, block[at : at + length]
        at += length


def _data_sizes(index: bytes, properties: dict[bytes, bytes], data_end: int) -> Numbers:
    """Of the data blocks, one after the other from the beginning to where others begin.

    An entry ends with its block's place and size. Each stands in full in the indexes that Spark
    writes, so the ends of the entries are known, and the sizes are read from there.
    """
    import numpy as np

    if properties.get(_INDEX_TYPE, bytes(4)) != bytes(4) or properties.get(_DELTAS) != b"\1":
        raise _Unknown
    places = _restarts(index)
    octets = np.frombuffer(index, np.uint8).astype(np.int64)
    if (octets[places[:-1]] != 0).any() or (np.diff(places) < 6).any():
        raise _Unknown
    last = places[1:] - 1
    # Backwards: the last byte of a number has no high bit, all before it have.
    sizes, longer = octets[last], np.ones(len(last), bool)
    for back in (1, 2, 3):
        octet = octets[last - back]
        longer &= octet >= 0x80
        sizes = np.where(longer, sizes << 7 | octet & 0x7F, sizes)
    if longer.any() or int((sizes + _TRAILER).sum()) != data_end:
        raise _Unknown
    return sizes


def _handle(data: bytes, at: int) -> tuple[int, _Handle]:
    at, start = _varint(data, at)
    at, size = _varint(data, at)
    return at, (start, size)


def _varint(data: bytes | memoryview, at: int) -> tuple[int, int]:
    """(where it ends, the number)."""
    value = 0
    for shift in range(0, 64, 7):
        octet = data[at]
        at += 1
        value |= (octet & 0x7F) << shift
        if octet < 0x80:
            return at, value
    raise _Unknown
