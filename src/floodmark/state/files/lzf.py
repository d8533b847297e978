"""Packs and unpacks lzf, the rarest of the codecs of state files."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator

from floodmark.errors import MalformedFile
from floodmark.state.files.compression import LZF_MAGIC, cut_short

BLOCK = 65535


def unpacked(data: bytes) -> Iterator[bytes]:
    at, end = 0, len(data)
    while at < end:
        if data[at : at + 2] != LZF_MAGIC or at + 5 > end:
            raise cut_short("lzf", at)
        kind = data[at + 2]
        (packed,) = struct.unpack_from(">H", data, at + 3)
        at += 5
        if kind == 1 and at + 2 <= end:
            (size,) = struct.unpack_from(">H", data, at)
            at += 2
        elif kind != 0:
            raise MalformedFile(f"the lzf block at byte {at} is damaged")
        if at + packed > end:
            raise cut_short("lzf", end)
        block = data[at : at + packed]
        yield block if kind == 0 else _lzf_block(block, size, at)
        at += packed


def _lzf_block(block: bytes, size: int, place: int) -> bytes:
    out, at, end = bytearray(), 0, len(block)
    try:
        while at < end:
            control = block[at]
            at += 1
            if control < 32:
                out += block[at : at + control + 1]
                at += control + 1
                continue
            length = control >> 5
            if length == 7:
                length += block[at]
                at += 1
            start = len(out) - ((control & 0x1F) << 8) - block[at] - 1
            at += 1
            if start < 0:
                raise IndexError
            _copy_back(out, start, length + 2)
    except IndexError:
        raise MalformedFile(f"the lzf block at byte {place} is damaged") from None
    if len(out) != size or at != end:
        raise MalformedFile(f"the lzf block at byte {place} is damaged")
    return bytes(out)


def _copy_back(out: bytearray, start: int, length: int) -> None:
    # The source may reach into the copied bytes themselves: then they repeat.
    pattern = out[start : start + length]
    out += (pattern * (length // len(pattern) + 1))[:length]


def packed(blocks: Iterable[bytes]) -> Iterator[bytes]:
    # Every reader of the format accepts plain blocks.
    for raw in blocks:
        yield LZF_MAGIC + b"\x00" + struct.pack(">H", len(raw)) + raw
