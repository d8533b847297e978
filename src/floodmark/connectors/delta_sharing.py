"""Delta Sharing: a version of a shared table, and a file within it. Pure.

`{"sourceVersion":1,"tableId":…,"tableVersion":8,"index":-1,"isStartingVersion":false}`
(DeltaSharingSourceOffset).
"""

from __future__ import annotations

from floodmark.connectors.source import Recognised, SourceKind, Sureness, Written, has_fields

_FORM = frozenset({"sourceVersion", "tableId", "tableVersion", "index", "isStartingVersion"})


class DeltaSharing(SourceKind):
    name = "delta-sharing"
    formats = frozenset({"deltasharing"})
    no_option = "Delta Sharing's startingVersion begins at a version, not inside it."

    def recognise(self, written: Written) -> Recognised | None:
        if has_fields(written.offset, _FORM):
            return Recognised(self.name, Sureness.CERTAIN, "a shared table's id and version")
        return None


KIND = DeltaSharing()
