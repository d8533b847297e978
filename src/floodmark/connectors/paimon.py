"""Paimon: a snapshot of the table, and a split within it. Pure.

`{"snapshotId":5,"index":1,"scanSnapshot":false}` (PaimonSourceOffset).
"""

from __future__ import annotations

from floodmark.connectors.source import Recognised, SourceKind, Sureness, Written, has_fields

_FORM = frozenset({"snapshotId", "index", "scanSnapshot"})
_MORE = frozenset({"totalSplits", "emptySnapshotCompleted"})


class Paimon(SourceKind):
    name = "paimon"
    no_option = "Paimon's scan options begin at a snapshot, not at a file inside it."

    def recognise(self, written: Written) -> Recognised | None:
        if has_fields(written.offset, _FORM, _MORE):
            return Recognised(self.name, Sureness.CERTAIN, "a snapshot and a split of it")
        return None


KIND = Paimon()
