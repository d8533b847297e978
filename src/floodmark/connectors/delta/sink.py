"""Reads what a Delta table's log remembers of queries that write to it: (query id, batch)."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from floodmark.checkpoint.text import shorten
from floodmark.connectors.delta import table_log
from floodmark.connectors.delta.offset import TABLE_LOG
from floodmark.errors import MalformedFile
from floodmark.storage.files import Files


def remembered(files: Files) -> Mapping[str, int] | None:
    """Return query id → its newest batch; None if this is not a Delta table."""
    return transactions(files) if table_log.is_delta_table(files) else None


def transactions(files: Files) -> Mapping[str, int]:
    """Return query id → the newest batch that the table has of it."""
    newest: dict[str, int] = {}
    checkpoints = table_log.checkpoints(files)
    since = max(checkpoints, default=-1)
    for name, version in _saved(files, checkpoints.get(since, ())):
        newest[name] = version
    later = [version for version in table_log.versions(files) if version > since]
    if later and later[0] > since + 1:
        raise MalformedFile(
            f"{TABLE_LOG}: the changes before version {later[0]} are not known",
            "The commits before it are gone, and no readable checkpoint of the log has them.",
        )
    for version in later:
        for action in table_log.actions(files, version):
            txn = action.get("txn")
            if isinstance(txn, dict):
                newest[str(txn.get("appId"))] = _version(txn)
    return newest


def rows_of_batches(files: Files, query_id: str, batches: Collection[int]) -> int | None:
    """Return how many rows a query's batches wrote; None if the log lacks one of them."""
    found: dict[int, int] = {}
    for version in table_log.versions(files):
        commit = table_log.actions(files, version)
        batch = _batch_of(commit, query_id)
        rows = _rows(commit) if batch in batches else None
        if batch is not None and rows is not None:
            found[batch] = rows
    return sum(found.values()) if found.keys() == set(batches) else None


def _batch_of(commit: list[dict[str, Any]], query_id: str) -> int | None:
    for action in commit:
        txn = action.get("txn")
        if isinstance(txn, dict) and txn.get("appId") == query_id:
            batch = txn.get("version")
            return batch if isinstance(batch, int) else None
    return None


def _rows(commit: list[dict[str, Any]]) -> int | None:
    """Return the rows that a commit added, by the statistics of its files."""
    count = 0
    for action in commit:
        added = action.get("add")
        if isinstance(added, dict):
            try:
                rows = json.loads(added["stats"])["numRecords"]
            except (KeyError, TypeError, ValueError):
                return None
            if not isinstance(rows, int):
                return None
            count += rows
    return count


def _saved(files: Files, paths: list[str] | tuple[str, ...]) -> Iterator[tuple[str, int]]:
    """Yield the transactions in a checkpoint of the table's log."""
    for txn in table_log.saved_actions(files, list(paths), "txn"):
        if txn.get("appId") is not None:
            yield str(txn["appId"]), _version(txn)


def _version(txn: Mapping[str, Any]) -> int:
    found = txn.get("version")
    if type(found) is not int:
        raise MalformedFile(f"{TABLE_LOG}: the batch of a query is no number: {shorten(repr(txn))}")
    return found
