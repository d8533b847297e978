"""Reads and writes Java's DataInput and DataOutput, as far as state files use them.

Numbers are big-endian; strings are modified UTF-8 after a 16-bit length.
"""

from __future__ import annotations

import struct

from floodmark.errors import MalformedFile

MAX_UTF = 65535


class DataReader:
    """A cursor over bytes. A read past the end is a MalformedFile, never an IndexError."""

    def __init__(self, data: bytes, position: int = 0) -> None:
        self.data = data
        self.position = position

    def take(self, size: int) -> bytes:
        end = self.position + size
        if size < 0 or end > len(self.data):
            raise MalformedFile(
                f"the file ends at byte {len(self.data)}, in the middle of a record",
                "The file's write was interrupted, or something cut the file short.",
            )
        piece = self.data[self.position : end]
        self.position = end
        return piece

    def number(self, layout: str) -> int:
        return int(struct.unpack(layout, self.take(struct.calcsize(layout)))[0])

    def int32(self) -> int:
        return self.number(">i")

    def int16(self) -> int:
        return self.number(">h")

    def utf(self) -> str:
        return decode_utf(self.take(self.number(">H")))

    @property
    def at_end(self) -> bool:
        return self.position == len(self.data)


def decode_utf(data: bytes) -> str:
    """Decode modified UTF-8: NUL has two bytes, and characters beyond U+FFFF are two surrogates."""
    try:
        text = data.replace(b"\xc0\x80", b"\x00").decode("utf-8", "surrogatepass")
        return text.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeError:
        raise MalformedFile("a string is not modified UTF-8") from None


def encode_utf(text: str) -> bytes:
    parts = []
    for character in text:
        if character == "\x00":
            parts.append(b"\xc0\x80")
        elif ord(character) > 0xFFFF:
            pair = character.encode("utf-16-be")
            halves = struct.unpack(">HH", pair)
            parts.extend(chr(half).encode("utf-8", "surrogatepass") for half in halves)
        else:
            parts.append(character.encode("utf-8", "surrogatepass"))
    data = b"".join(parts)
    if len(data) > MAX_UTF:
        raise MalformedFile(f"a string of {len(data)} bytes does not fit Java's UTF")
    return struct.pack(">H", len(data)) + data
