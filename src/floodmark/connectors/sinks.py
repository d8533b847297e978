"""Which kinds of sinks remember the batches that they have, and by what. Pure.

Delta and Iceberg go by (query id, batch), the file sink by the batch number alone; of every other
sink nothing can be known. A kind's `sink` module reads what it remembers.
"""

from __future__ import annotations

from floodmark.connectors.files.offset import FILE_SINKS

DELTA_SINK = "delta"
ICEBERG_SINK = "iceberg"
FILE_SINK = "files"


def goes_by_query(kind: str | None) -> bool:
    """Whether a sink takes each batch of a query once, by the query's id."""
    return kind in (DELTA_SINK, ICEBERG_SINK)


def forgets(kind: str | None) -> bool:
    """Whether a sink that goes by the query forgets: Iceberg, with the snapshots that expire."""
    return kind == ICEBERG_SINK


def goes_by_number(kind: str | None) -> bool:
    """Whether a sink skips every batch whose number its log has."""
    return kind == FILE_SINK or kind in FILE_SINKS
