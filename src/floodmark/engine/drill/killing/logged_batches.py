"""Reads a sink's own log of batches, without Spark."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import unquote

from floodmark.connectors.delta.offset import TABLE_LOG
from floodmark.connectors.files.file_log import SINK_LOG

_COMMIT = re.compile(r"\d{20}\.json")


class BatchRecord(Protocol):
    def has_batch(self, query_id: str, batch: int) -> bool:
        """Whether the sink's own transactions have a record of this query and batch."""

    def half_written(self, since: float) -> bool:
        """Whether this run began a write that it never finished."""


class SparkSinkRecord(BatchRecord, Protocol):
    """The record of a sink that Spark itself writes: its log shows when a batch begins and ends."""

    def commits(self) -> list[str]: ...

    def data_files(self) -> set[str]: ...


def names(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)  # noqa: PTH208 - called all the time, and twice as quick
    except (FileNotFoundError, NotADirectoryError):
        return []


def _below(folder: Path) -> set[str]:
    """Return data files by their path from `folder`, also those in partition folders."""
    found = set()
    for at, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(("_", "."))]
        found |= {
            os.path.relpath(os.path.join(at, name), folder)  # noqa: PTH118
            for name in files
            if not name.startswith(("_", "."))
        }
    return found


class DeltaLog:
    def __init__(self, table: Path) -> None:
        self.table = table

    def commits(self) -> list[str]:
        return sorted(name for name in names(self.table / TABLE_LOG) if _COMMIT.fullmatch(name))

    def data_files(self) -> set[str]:
        return _below(self.table)

    def has_batch(self, query_id: str, batch: int) -> bool:
        return any(self.is_of(commit, query_id, batch) for commit in self.commits())

    def is_of(self, commit: str, query_id: str, batch: int) -> bool:
        return any(
            action["txn"]["appId"] == query_id and action["txn"]["version"] == batch
            for action in self._read(commit)
            if "txn" in action
        )

    def half_written(self, since: float) -> bool:
        known = {unquote(action["add"]["path"]) for action in self.actions() if "add" in action}
        orphans = self.data_files() - known
        return any((self.table / name).stat().st_mtime >= since for name in orphans)

    def actions(self) -> list[dict[str, Any]]:
        return [action for name in self.commits() for action in self._read(name)]

    def _read(self, commit: str) -> list[dict[str, Any]]:
        text = (self.table / TABLE_LOG / commit).read_text()
        return [json.loads(line) for line in text.splitlines()]


class FilesLog:
    """Reads Spark's file sink: only files that its log in `_spark_metadata` names."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._log = folder / SINK_LOG

    def commits(self) -> list[str]:
        return [name for name in names(self._log) if name.partition(".")[0].isdecimal()]

    def data_files(self) -> set[str]:
        return _below(self._folder)

    def added(self) -> list[str]:
        """Return each file as often as the log names it; a compact entry repeats earlier ones."""
        entries = {int(name.partition(".")[0]): name for name in sorted(self.commits())}
        compact = max((n for n, name in entries.items() if name.endswith(".compact")), default=-1)
        lines = [
            line
            for number, name in entries.items()
            if number >= compact
            for line in (self._log / name).read_text().splitlines()[1:]
        ]
        return [unquote(json.loads(line)["path"].removeprefix("file://")) for line in lines]

    def has_batch(self, query_id: str, batch: int) -> bool:
        return any(name.partition(".")[0] == str(batch) for name in self.commits())

    def half_written(self, since: float) -> bool:
        known = {os.path.relpath(path, self._folder) for path in self.added()}
        orphans = self.data_files() - known
        return any((self._folder / name).stat().st_mtime >= since for name in orphans)
