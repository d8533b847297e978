"""Reads offsets of the rate source (for tests): seconds since it was created. Pure.

A bare number beside `sources/<id>/0`, which has the time of creation (RateStreamMicroBatchStream),
`{"offset":10,"timestamp":1000}` (rate-micro-batch), or partition → `{"value":7,"runTimeMs":1}`
(continuous).
"""

from __future__ import annotations

import re
from typing import Any

from floodmark.checkpoint.text import decode, parse_version, shorten
from floodmark.connectors.source import Recognised, SourceKind, Traces
from floodmark.errors import MalformedFile

_EPOCH_MS = re.compile("[0-9]{1,18}")


class Rate(SourceKind):
    name = "rate"
    named_parts = ("field",)  # a partition, where it runs continuously
    formats = frozenset({"rate-micro-batch"})
    no_option = "The rate source has no starting option."
    unit = "seconds"
    start_files = ("0",)

    def recognise(self, traces: Traces) -> Recognised | None:
        offset = traces.offset
        if type(offset) is int and self.began(traces):
            why = "a bare number, and sources/<id>/0 has the time of its creation"
            return self.certain(why)
        if not isinstance(offset, dict) or not offset:
            return None
        numbers = {int}.issuperset(map(type, offset.values()))
        if offset.keys() == {"offset", "timestamp"} and numbers:
            why = "an offset and a timestamp, as rate-micro-batch writes them"
            return self._doubtful(traces, why)
        if all(map(_is_partition_value, offset.values())):
            why = "a value and a run time a partition, as the continuous rate source writes them"
            return self._doubtful(traces, why)
        return None

    def began(self, traces: Traces) -> bool:
        return traces.initial_body.isdigit()

    def first_offset(self, initial: bytes | None) -> Any:
        return 0

    def _doubtful(self, traces: Traces, why: str) -> Recognised:
        # A Python data source may choose such common words too, and leaves nothing in sources/.
        return self.probable(why) if traces.has_lead_byte else self.possible(why)


def _is_partition_value(value: Any) -> bool:
    return isinstance(value, dict) and value.keys() == {"value", "runTimeMs"}


def parse_rate_initial(data: bytes) -> int:
    """Return when the rate source was created, in ms: its offsets are seconds since then."""
    line, _, body = decode(data).partition("\n")
    parse_version(line, 1)
    if not _EPOCH_MS.fullmatch(body.strip()):
        raise MalformedFile(f"the rate source's start is {shorten(body)!r}, not a time in ms")
    return int(body)


KIND = Rate()
