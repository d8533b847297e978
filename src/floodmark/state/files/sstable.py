"""Checks whether the blocks of a RocksDB table are complete, by their checksums and the index.

RocksDB would check the same while it returns every pair, which takes many times as long. This
module can only say that a table is sound. RocksDB itself must judge every other table, and forms
that Spark does not write by itself (a partitioned index, format 6, an index packed with zstd).

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
    """Computes the checksums of blocks by their starts and ends, each with the byte after it."""

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
"""Largest block that leads to others: an index has some dozen bytes for each 4 KiB of data."""
_LONGEST_BLOCK = 256 << 20
_Handle = tuple[int, int]
_Read = Callable[[int, int], bytes]


class _Unknown(Exception):
    """Raised if this module cannot decide whether a table is sound."""


FOOTER_SIZE = _FOOTER.size


def require_footer_inside(name: str, footer: bytes, size: int) -> None:
    """Refuse a table whose end points outside the table.

    RocksDB would ask for memory of any size, and end the process if it gets none. RocksDB itself
    refuses other formats.
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
            f"{name}: the end of this RocksDB table points outside the table",
            "The table is damaged.",
            "Restore it from a backup; `floodmark repair CP` says what else can be done.",
        )


class TableWalk:
    """Checks a table that comes in pieces, after its end has shown its blocks."""

    def __init__(self, sizes: Numbers, checksums: Checksums) -> None:
        """`sizes` of the blocks, which follow each other from the beginning."""
        self._after = (sizes + _TRAILER).cumsum()
        self._sizes = sizes
        self._checksums = checksums
        self._done = 0
        self._at = 0
        self._sound = True

    def take(self, piece: memoryview) -> int:
        """Return how many bytes were used; the others must come again before the next piece."""
        first, used = self._done, 0
        self._done = int(self._after.searchsorted(self._at + len(piece), "right"))
        if self._done > first:
            after = self._after[first : self._done] - self._at
            ends, used = after - _TRAILER, int(after[-1])
            found = self._checksums(piece, ends - self._sizes[first : self._done], ends)
            self._sound &= bool((found == _written(piece, ends)).all())
            self._at += used
        # After the last block comes the footer, which was read already.
        return len(piece) if self._done == len(self._sizes) else used

    @property
    def fits(self) -> bool:
        """Whether every block has come, with the checksum that it was written with."""
        return self._sound and self._done == len(self._sizes)

    @property
    def longest(self) -> int:
        return int(self._sizes.max()) + _TRAILER


def table_walk(size: int, read: _Read) -> TableWalk | None:
    """Return a walk; None if the table's end does not lead to blocks that fill it.

    `read`: from, how many.
    """
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
    """Return the checksum function: Spark 3.5 uses the first, later versions the second.

    RocksDB must check tables with other checksums.
    """
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
    # RocksDB stores the checksum rotated and shifted.
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
    """Return an unpacked block that leads to others, after its checksum was checked."""
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
    """Return the positions of full keys, and the end of the last entry."""
    import numpy as np

    (count,) = struct.unpack_from("<I", block, len(block) - 4)
    end = len(block) - 4 * (count + 1)
    if end < 0 or not count:
        raise _Unknown
    return np.append(np.frombuffer(block, "<u4", count, end), end).astype(np.int64)


def _pairs(block: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield keys and values; keys share their beginning with the key before."""
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
    """Return the sizes of the data blocks, which follow each other from the beginning.

    An entry ends with the position and size of its block. In the indexes that Spark writes each
    entry is complete, so the ends of the entries are known, and the sizes are read from there.
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
    """Return (the end position, the number)."""
    value = 0
    for shift in range(0, 64, 7):
        octet = data[at]
        at += 1
        value |= (octet & 0x7F) << shift
        if octet < 0x80:
            return at, value
    raise _Unknown
