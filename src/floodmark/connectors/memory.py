"""Reads offsets of memory streams (for tests) and sockets: a bare number. Pure.

Both write LongOffset and nothing in `sources/`, so a checkpoint does not show which one it is.
"""

from __future__ import annotations

from typing import Any

from floodmark.connectors.source import LONGS, Recognised, SourceKind, Traces


class Memory(SourceKind):
    name = "memory"
    shown_as = "memory or socket"
    formats = frozenset({"memorystream"})
    any_format = True
    going_back = (
        "keeps nothing that was read, if it is a memory stream or a socket: it goes on with new "
        "data"
    )
    no_option = "A memory stream or a socket cannot be read again from an offset."

    def recognise(self, traces: Traces) -> Recognised | None:
        if type(traces.offset) is int and traces.offset in LONGS and not traces.initial:
            why = "the offset is a bare number, and sources/ has no file"
            return self.possible(why)
        return None

    def first_offset(self, initial: bytes | None) -> Any:
        return 0


KIND = Memory()
