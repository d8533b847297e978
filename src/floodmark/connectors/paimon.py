"""Paimon: a snapshot of the table, and a split within it. Pure.

`{"snapshotId":5,"index":1,"scanSnapshot":false}` (PaimonSourceOffset).
"""

from __future__ import annotations

from typing import Any

from floodmark.connectors.source import (
    Recognised,
    SourceKind,
    Sureness,
    Traces,
    arrow,
    has_fields,
)

_FORM = frozenset({"snapshotId", "index", "scanSnapshot"})
_MORE = frozenset({"totalSplits", "emptySnapshotCompleted"})


class Paimon(SourceKind):
    name = "paimon"
    no_option = "Paimon's scan options begin at a snapshot, not at a file inside it."

    def recognise(self, traces: Traces) -> Recognised | None:
        if has_fields(traces.offset, _FORM, _MORE):
            return Recognised(self.name, Sureness.CERTAIN, "a snapshot and a split of it")
        return None

    def explain(self, end: Any, start: Any) -> list[str]:
        return [arrow(_words(start), _words(end))]


def _words(offset: Any) -> str | None:
    if not isinstance(offset, dict):
        return None
    words = f"snapshot {offset.get('snapshotId')} split {offset.get('index')}"
    return words + (" of the whole table" if offset.get("scanSnapshot") else "")


KIND = Paimon()
