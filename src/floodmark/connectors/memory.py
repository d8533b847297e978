"""Memory streams, for tests, and sockets: a bare number, and nothing in `sources/`. Pure.

Both write LongOffset; nothing in the checkpoint tells one from the other.
"""

from __future__ import annotations

from typing import Any

from floodmark.connectors.source import LONGS, Recognised, SourceKind, Sureness, Traces


class Memory(SourceKind):
    name = "memory"
    shown_as = "memory or socket"
    formats = frozenset({"memorystream"})
    any_format = True
    going_back = (
        "keeps nothing that was read, if it is a memory stream or a socket: it goes on with what "
        "comes next"
    )
    no_option = "A memory stream or a socket cannot be read again from an offset."

    def recognise(self, traces: Traces) -> Recognised | None:
        if type(traces.offset) is int and traces.offset in LONGS and not traces.initial:
            why = "a bare number, and no file in sources/"
            return Recognised(self.name, Sureness.POSSIBLE, why)
        return None

    def first_offset(self, initial: bytes | None) -> Any:
        return 0


KIND = Memory()
