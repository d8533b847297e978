"""Reads Paimon's offsets: a snapshot of the table, and a split within it. Pure. Pure.

`{"snapshotId":5,"index":1,"scanSnapshot":false}` (PaimonSourceOffset).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from floodmark.connectors.source import FormedKind


class Paimon(FormedKind):
    name = "paimon"
    fields = frozenset({"snapshotId", "index", "scanSnapshot"})
    more_fields = frozenset({"totalSplits", "emptySnapshotCompleted"})
    may_be_left_out = more_fields
    whole_numbers = frozenset({"snapshotId", "index"})
    switches = frozenset({"scanSnapshot"})
    plain_words = True
    told_by = "a snapshot and a split of it"
    going_back = (
        "begins where its own options say (scan.mode), or at the oldest snapshot left, if that is "
        "later than the offset, and skips everything between without a warning"
    )
    no_option = "Paimon's scan options begin at a snapshot, not at a file inside it."

    def words(self, offset: Mapping[str, Any]) -> str:
        words = f"snapshot {offset.get('snapshotId')} split {offset.get('index')}"
        return words + (" of the whole table" if offset.get("scanSnapshot") else "")


KIND = Paimon()
