"""Memory streams, for tests, and sockets: a bare number, and nothing in `sources/`. Pure.

Both write LongOffset; nothing in the checkpoint tells one from the other.
"""

from __future__ import annotations

from typing import Any

from floodmark.connectors.source import Recognised, SourceKind, Sureness, Traces


class Memory(SourceKind):
    name = "memory"
    shown_as = "memory or socket"
    formats = frozenset({"memorystream"})
    any_format = True
    no_option = "A memory stream or a socket cannot be read again from an offset."

    def recognise(self, traces: Traces) -> Recognised | None:
        if type(traces.offset) is int and not traces.initial:
            why = "a bare number, and no file in sources/"
            return Recognised(self.name, Sureness.POSSIBLE, why)
        return None

    def first_offset(self, initial: bytes | None) -> Any:
        return 0


KIND = Memory()
