"""Reads offsets of Azure Cosmos DB's change feed: an opaque continuation. Pure. Pure.

`{"id":"com.azure.cosmos.spark.changeFeed.offset.v1","state":"…","partitions":[…]}`
(ChangeFeedOffset); the partitions are those of the planned batch.
"""

from __future__ import annotations

from typing import Any

from floodmark.connectors.source import Recognised, SourceKind, Traces

_ID = "com.azure.cosmos.spark.changeFeed.offset.v1"


class Cosmos(SourceKind):
    name = "cosmos"
    formats = frozenset({"cosmos.oltp.changefeed"})
    no_option = "spark.cosmos.changeFeed.startFrom takes a time, not this continuation."

    def recognise(self, traces: Traces) -> Recognised | None:
        if isinstance(traces.offset, dict) and traces.offset.get("id") == _ID:
            return self.certain("the change feed's own id")
        return None

    def explain(self, end: Any, start: Any) -> list[str]:
        state, partitions = end.get("state"), end.get("partitions")
        size = f"{len(state):,} characters" if isinstance(state, str) else "missing"
        planned = f", {len(partitions):,} partitions" if isinstance(partitions, list) else ""
        return [f"change feed continuation, {size}{planned}"]


KIND = Cosmos()
