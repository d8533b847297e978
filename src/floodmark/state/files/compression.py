"""Packs and unpacks the compressed streams of state files: lz4, zstd, snappy and lzf.

Each codec has its own first bytes, so a file shows its codec. Content comes one piece at a time: a
file that would grow without bound uses no more memory than its reader keeps.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from itertools import chain

from floodmark.errors import MalformedFile, OverLimit, WrongUse
from floodmark.limits import FREE_OF_RATIO, current, over_limit, shown

LZ4_MAGIC = b"LZ4Block"
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
SNAPPY_MAGIC = b"\x82SNAPPY\x00"
LZF_MAGIC = b"ZV"
CODECS = ("lz4", "zstd", "snappy", "lzf")

_LZ4_HEADER = struct.Struct("<9siii")
_LZ4_START = struct.Struct("<9si")
_LZ4_SEED = 0x9747B28C
_LZ4_RAW, _LZ4_PACKED = 0x10, 0x20
_LZ4_BLOCK = 32 * 1024
# The first bytes of a block → the largest content of a block with this level.
_LZ4_MOST = {
    LZ4_MAGIC + bytes([method | level]): 1 << (10 + level)
    for method in (_LZ4_RAW, _LZ4_PACKED)
    for level in range(16)
}
_SNAPPY_HEADER = SNAPPY_MAGIC + struct.pack(">ii", 1, 1)
_SNAPPY_BLOCK = 32 * 1024
_SNAPPY_MOST = 1 << 28
_ZSTD_PIECE = 1 << 20

Buffer = bytes | bytearray | memoryview
_Lz4Frame = tuple[int, int, int, int, bool]
"""A block's position, packed size, unpacked size, checksum, and whether it is packed."""


def codec_of(data: bytes) -> str:
    for codec, magic in (
        ("lz4", LZ4_MAGIC),
        ("zstd", ZSTD_MAGIC),
        ("snappy", SNAPPY_MAGIC),
        ("lzf", LZF_MAGIC),
    ):
        if data.startswith(magic):
            return codec
    if not data:
        raise MalformedFile("the state file is empty", "The file's write was interrupted.")
    raise MalformedFile(
        f"no compression format of Spark begins with {data[:8].hex(' ')}",
        "The file is damaged or encrypted, or was written with a custom codec class.",
    )


def pieces(data: bytes) -> Iterator[bytes]:
    """Yield the stream's content, a block at a time, with checksums checked.

    A small file that would grow without end is an error: see `floodmark.limits`.
    """
    return _within_ratio(_pieces(data), len(data))


def _within_ratio(content: Iterator[bytes], packed: int) -> Iterator[bytes]:
    ratio = current().sizes["ratio"]
    most, total = max(FREE_OF_RATIO, packed * ratio), 0
    for piece in content:
        total += len(piece)
        if total > most:
            raise OverLimit(
                f"the file has {shown(packed)} and unpacks to more than {shown(most)}",
                f"The content is more than {ratio:,} times as large as the file. `floodmark "
                f"--raise-limit ratio={ratio * 100} …` raises the limit.",
                "Check the file first: Spark does not write such state.",
            )
        yield piece


def _pieces(data: bytes) -> Iterator[bytes]:
    codec = codec_of(data)
    if codec == "lz4":
        return _lz4(data)
    if codec == "zstd":
        return _zstd(data)
    if codec == "snappy":
        return _snappy(data)
    from floodmark.state.files import lzf  # hardly anybody sets this codec

    return lzf.unpacked(data)


def decompress(data: bytes, most: int | None = None) -> bytes:
    """Return the whole content, which must fit into `most` bytes, or into the memory budget."""
    most = current().memory if most is None else most
    held, total = [], 0
    for piece in pieces(data):
        total += len(piece)
        if total > most:
            raise over_limit("the unpacked content", None, "memory")
        held.append(piece)
    return b"".join(held)


def compress(data: bytes, codec: str = "lz4") -> bytes:
    return b"".join(compressed([data], codec))


def compressed(content: Iterable[bytes], codec: str = "lz4") -> Iterator[bytes]:
    """Yield the stream of a content that comes in pieces, itself in pieces."""
    if codec == "lz4":
        return _lz4_blocks(_blocks_of(content, _LZ4_BLOCK))
    if codec == "zstd":
        return _zstd_frame(content)
    if codec == "snappy":
        return _snappy_blocks(_blocks_of(content, _SNAPPY_BLOCK))
    if codec == "lzf":
        from floodmark.state.files import lzf

        return lzf.packed(_blocks_of(content, lzf.BLOCK))
    raise WrongUse(f"unknown codec {codec!r}; Spark has {', '.join(CODECS)}")


def _blocks_of(content: Iterable[bytes], size: int) -> Iterator[bytes]:
    """Yield blocks of exactly one size; the last one may be smaller."""
    rest = b""
    for piece in content:
        whole = rest + piece if rest else piece
        end = len(whole) - len(whole) % size
        for at in range(0, end, size):
            yield whole[at : at + size]
        rest = whole[end:]
    if rest:
        yield rest


def cut_short(codec: str, at: int) -> MalformedFile:
    return MalformedFile(
        f"the {codec} stream is cut short at byte {at}",
        "The file's write or a copy of it was interrupted.",
    )


def _lz4(data: bytes) -> Iterator[bytes]:
    return _unpacked(data, _lz4_frames(data))


def _unpacked(data: Buffer, frames: Iterable[_Lz4Frame]) -> Iterator[bytes]:
    """Yield the blocks' content, as far as the checksums match."""
    import lz4.block
    import xxhash

    decompress, digest = lz4.block.decompress, xxhash.xxh32_intdigest
    view = memoryview(data)
    for at, packed, size, checksum, is_packed in frames:
        block = view[at : at + packed]
        if is_packed:
            try:
                raw = decompress(block, uncompressed_size=size)
            except (lz4.block.LZ4BlockError, ValueError, OverflowError):
                raise MalformedFile(f"the lz4 block at byte {at} is damaged") from None
        else:
            raw = bytes(block)
        # lz4-java's Checksum keeps 28 of the 32 bits.
        if len(raw) != size or digest(raw, _LZ4_SEED) & 0xFFFFFFF != checksum:
            raise MalformedFile(
                f"the lz4 block at byte {at} does not match its checksum",
                "The file was damaged after Spark wrote it.",
            )
        yield raw


def _lz4_frames(data: Buffer) -> Iterator[_Lz4Frame]:
    """Yield the frames by their headers alone, up to the one that ends the stream."""
    at = 0
    while True:
        frames, at, ended = _whole_frames(data, at)
        yield from frames
        if ended:
            return
        if not frames:
            raise cut_short("lz4", len(data))


def _whole_frames(data: Buffer, at: int) -> tuple[list[_Lz4Frame], int, bool]:
    """Return the complete blocks from a position on, the next position, and whether it ended.

    Damage is an error only at the first block, so that the blocks before it are returned first.
    """
    found: list[_Lz4Frame] = []
    unpack, length, most_of = _LZ4_HEADER.unpack_from, _LZ4_HEADER.size, _LZ4_MOST.get
    end = len(data)
    while at + length <= end:
        start, packed, size, checksum = unpack(data, at)
        most = most_of(start, -1)
        is_packed = start[-1] >= _LZ4_PACKED
        sound = 0 <= size <= most and 0 <= packed <= most + most // 100 + 64
        if not sound or (packed != size and not is_packed):
            if found:
                break
            raise MalformedFile(f"the lz4 block at byte {at} is damaged")
        body = at + length
        if size == 0:
            return found, body, True
        if body + packed > end:
            break
        found.append((body, packed, size, checksum, is_packed))
        at = body + packed
    return found, at, False


def _last_blocks(data: Buffer) -> int:
    """Return where the last blocks begin, three at most, found by the headers before them."""
    unpack, length, starts = _LZ4_START.unpack_from, _LZ4_HEADER.size, _LZ4_MOST
    last = len(data) - length
    third = second = first = at = 0
    while at <= last:
        start, packed = unpack(data, at)
        if packed <= 0 or start not in starts:
            break
        third, second, first = second, first, at
        at += length + packed
    return third


class Lz4Walk:
    """Checks an lz4 stream that comes in pieces."""

    def __init__(self, vouched: bool) -> None:
        """`vouched`: the bytes are known to be right, so only headers and both ends are read."""
        self._vouched = vouched
        self._last: list[tuple[bytes, _Lz4Frame]] = []
        self.head: bytes | None = None
        """The first block's content."""
        self.ended = False

    def take(self, piece: Buffer) -> int:
        """Return how many bytes were used; the others must come again before the next piece."""
        if self.ended:
            return len(piece)
        passed_over = _last_blocks(piece) if self._vouched and self.head is not None else 0
        frames, used, self.ended = _whole_frames(piece, passed_over)
        if frames and self.head is None:
            self.head = b"".join(_unpacked(piece, frames[:1]))
        if not self._vouched:
            for _ in _unpacked(piece, frames):
                pass
        for at, packed, size, checksum, is_packed in frames[-2:]:
            block = bytes(piece[at : at + packed])
            self._last = [*self._last, (block, (0, packed, size, checksum, is_packed))][-2:]
        return len(piece) if self.ended else used

    def tail(self, size: int) -> bytes:
        """Return the last bytes of the content."""
        last = chain.from_iterable(_unpacked(block, [frame]) for block, frame in self._last)
        return b"".join(last)[-size:]


def lz4_ends(data: bytes, tail: int) -> tuple[bytes, bytes]:
    """Return the first block's content and the last bytes; skip the blocks between them."""
    frames = list(_lz4_frames(data))
    head = b"".join(_unpacked(data, frames[:1]))
    if len(frames) < 2:
        return head, head[-tail:]
    return head, b"".join(_unpacked(data, frames[-2:]))[-tail:]


def _lz4_blocks(blocks: Iterable[bytes]) -> Iterator[bytes]:
    import lz4.block
    import xxhash

    level = _LZ4_BLOCK.bit_length() - 11
    for raw in blocks:
        packed = lz4.block.compress(raw, store_size=False)
        method, body = (_LZ4_PACKED, packed) if len(packed) < len(raw) else (_LZ4_RAW, raw)
        checksum = xxhash.xxh32_intdigest(raw, _LZ4_SEED) & 0xFFFFFFF
        yield _LZ4_HEADER.pack(LZ4_MAGIC + bytes([method | level]), len(body), len(raw), checksum)
        yield body
    yield _LZ4_HEADER.pack(LZ4_MAGIC + bytes([_LZ4_RAW | level]), 0, 0, 0)


def _zstd(data: bytes) -> Iterator[bytes]:
    import pyarrow as pa

    try:
        with pa.CompressedInputStream(pa.BufferReader(data), "zstd") as stream:
            while piece := stream.read(_ZSTD_PIECE):
                yield piece
    except OSError as error:
        raise MalformedFile(f"the zstd stream is damaged or cut short: {error}") from None


def _zstd_frame(content: Iterable[bytes]) -> Iterator[bytes]:
    import cramjam

    frame = cramjam.zstd.Compressor()
    for piece in content:
        frame.compress(piece)
        yield bytes(frame.flush())
    yield bytes(frame.finish())


def _snappy(data: bytes) -> Iterator[bytes]:
    import cramjam

    at, end = len(_SNAPPY_HEADER), len(data)
    if end < at:
        raise cut_short("snappy", end)
    while at < end:
        if at + 4 > end:
            raise cut_short("snappy", end)
        (packed,) = struct.unpack_from(">i", data, at)
        at += 4
        if packed < 0 or at + packed > end:
            raise cut_short("snappy", end)
        block = data[at : at + packed]
        if data.startswith(SNAPPY_MAGIC, at - 4):
            raise MalformedFile("two snappy streams in one file")
        try:
            size = cramjam.snappy.decompress_raw_len(block)
            # Three bytes can stand for 64 at most.
            if size > min(_SNAPPY_MOST, 64 * packed + 64):
                raise MalformedFile(f"the snappy block at byte {at} claims to be enormous")
            yield bytes(cramjam.snappy.decompress_raw(block))
        except cramjam.DecompressionError as error:
            raise MalformedFile(f"the snappy block at byte {at} is damaged: {error}") from None
        at += packed


def _snappy_blocks(blocks: Iterable[bytes]) -> Iterator[bytes]:
    import cramjam

    yield _SNAPPY_HEADER
    for raw in blocks:
        packed = bytes(cramjam.snappy.compress_raw(raw))
        yield struct.pack(">i", len(packed))
        yield packed


def segments(blocks: Iterable[bytes], size: int) -> Iterator[bytes]:
    """Yield the blocks joined to pieces of about one size; the last one may be smaller."""
    held: list[bytes] = []
    total = 0
    for block in blocks:
        held.append(block)
        total += len(block)
        if total >= size:
            yield b"".join(held)
            held, total = [], 0
    yield b"".join(held)
