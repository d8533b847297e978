"""Reads what an Iceberg table remembers of queries that write to it: (query id, batch).

The pairs stand in its snapshots. Iceberg looks from the current snapshot back for the newest one of
a query, and forgets what has expired.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from floodmark.connectors.behind import total
from floodmark.connectors.iceberg.table import find_table
from floodmark.connectors.iceberg.table_metadata import FOLDER, IcebergTable, newest_names
from floodmark.storage.files import Files


def is_iceberg_table(files: Files) -> bool:
    return bool(newest_names(files.level(FOLDER).files))


def remembered(files: Files) -> Mapping[str, int] | None:
    """Return query id → its newest batch; None if this is not an Iceberg table."""
    if not is_iceberg_table(files):
        return None
    return epochs(find_table(f"{files.root}/", lambda _: files)[0])


def remembered_by_name(name: str) -> Mapping[str, int]:
    """Return the same for a table that only a catalog knows."""
    return epochs(find_table(name, _no_folder)[0])


def _no_folder(place: str) -> Files:
    raise AssertionError(place)


def rows_of_batches(files: Files, query_id: str, batches: Collection[int]) -> int | None:
    """Return how many rows a query's batches wrote; None if the snapshots lack one of them."""
    table, _ = find_table(f"{files.root}/", lambda _: files)
    rows = {
        one.epoch: one.added_records
        for one in table.line
        if one.query_id == query_id and one.epoch in batches
    }
    return total(rows.values()) if rows.keys() == set(batches) else None


def epochs(table: IcebergTable) -> Mapping[str, int]:
    """Return query id → the batch of its newest snapshot, as Iceberg itself finds it."""
    newest: dict[str, int] = {}
    for snapshot in table.line:
        if snapshot.query_id is not None and snapshot.epoch is not None:
            newest.setdefault(snapshot.query_id, snapshot.epoch)
    return newest
