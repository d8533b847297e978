"""Says which kinds of sinks remember their batches, and by which key. Pure.

Delta and Iceberg remember (query id, batch), the file sink the batch number alone. Nothing is known
about other sinks. A kind's `sink` module reads what it remembers.
"""

from __future__ import annotations

from floodmark.connectors.files.offset import FILE_SINKS

DELTA_SINK = "delta"
ICEBERG_SINK = "iceberg"
FILE_SINK = "files"


def goes_by_query(kind: str | None) -> bool:
    """Whether a sink writes each batch of a query once, by the query's id."""
    return kind in (DELTA_SINK, ICEBERG_SINK)


def forgets(kind: str | None) -> bool:
    """Whether a sink that remembers query ids can forget: Iceberg does, when snapshots expire."""
    return kind == ICEBERG_SINK


def goes_by_number(kind: str | None) -> bool:
    """Whether a sink skips every batch whose number is in its log."""
    return kind == FILE_SINK or kind in FILE_SINKS
