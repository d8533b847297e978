"""Delta Sharing: a version of a shared table, and a file within it. Pure.

`{"sourceVersion":1,"tableId":…,"tableVersion":8,"index":-1,"isStartingVersion":false}`
(DeltaSharingSourceOffset).
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

_FORM = frozenset({"sourceVersion", "tableId", "tableVersion", "index", "isStartingVersion"})


class DeltaSharing(SourceKind):
    name = "delta-sharing"
    formats = frozenset({"deltasharing"})
    no_option = "Delta Sharing's startingVersion begins at a version, not inside it."

    def recognise(self, traces: Traces) -> Recognised | None:
        if has_fields(traces.offset, _FORM):
            return Recognised(self.name, Sureness.CERTAIN, "a shared table's id and version")
        return None

    def explain(self, end: Any, start: Any) -> list[str]:
        return [arrow(_words(start), _words(end))]


def _words(offset: Any) -> str | None:
    if not isinstance(offset, dict):
        return None
    words = f"version {offset.get('tableVersion')}"
    if offset.get("index") != -1:
        words += f" file {offset.get('index')}"
    return words + (" of the first snapshot" if offset.get("isStartingVersion") else "")


KIND = DeltaSharing()
