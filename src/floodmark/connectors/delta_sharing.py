"""Reads offsets of Delta Sharing: a version of a shared table, and a file within it. Pure. Pure.

`{"sourceVersion":1,"tableId":…,"tableVersion":8,"index":-1,"isStartingVersion":false}`
(DeltaSharingSourceOffset).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from floodmark.connectors.source import FormedKind


class DeltaSharing(FormedKind):
    name = "delta-sharing"
    formats = frozenset({"deltasharing"})
    fields = frozenset({"sourceVersion", "tableId", "tableVersion", "index", "isStartingVersion"})
    version_field = "sourceVersion"
    whole_numbers = frozenset({"sourceVersion", "tableVersion", "index"})
    switches = frozenset({"isStartingVersion"})
    told_by = "a shared table's id and version"
    going_back = (
        "gets earlier versions only as long as the server shares the table's history; floodmark "
        "does not ask the server"
    )
    no_option = "Delta Sharing's startingVersion begins at a version, not inside it."

    def words(self, offset: Mapping[str, Any]) -> str:
        words = f"version {offset.get('tableVersion')}"
        if offset.get("index") != -1:
            words += f" file {offset.get('index')}"
        return words + (" of the first snapshot" if offset.get("isStartingVersion") else "")


KIND = DeltaSharing()
