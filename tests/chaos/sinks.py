"""What a sink holds, read without Spark: so that no engine marks its own work."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import unquote

Row = tuple[Any, ...]
_COMMIT = re.compile(r"\d{20}\.json")


class Sink(Protocol):
    def rows(self, columns: tuple[str, ...]) -> Counter[Row]: ...

    def has_batch(self, query_id: str, batch: int) -> bool:
        """By the record of (query, batch) that the sink keeps in its own transactions."""

    def half_written(self, since: float) -> bool:
        """A write that this run began and never finished."""


def names(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)  # noqa: PTH208 - polled all the time, and twice as quick
    except FileNotFoundError:
        return []


class DeltaSink:
    def __init__(self, table: Path) -> None:
        self.table = table

    def commits(self) -> list[str]:
        return sorted(name for name in names(self.table / "_delta_log") if _COMMIT.fullmatch(name))

    def data_files(self) -> set[str]:
        return {
            name
            for name in names(self.table)
            if name.endswith(".parquet") and not name.startswith(".")
        }

    def rows(self, columns: tuple[str, ...]) -> Counter[Row]:
        import pyarrow.parquet

        found: Counter[Row] = Counter()
        for name in self._live():
            table = pyarrow.parquet.read_table(self.table / name, columns=list(columns))
            found.update(zip(*(table.column(one).to_pylist() for one in columns), strict=True))
        return found

    def has_batch(self, query_id: str, batch: int) -> bool:
        return any(self._is_of(commit, query_id, batch) for commit in self.commits())

    def take_back(self, query_id: str, batch: int) -> None:
        """As its owner does before a rewind: the versions after that batch's go."""
        log = self.table / "_delta_log"
        versions = [name for name in self.commits() if self._is_of(name, query_id, batch)]
        for name in names(log):
            if name[:20].isdecimal() and (not versions or name[:20] > versions[-1][:20]):
                (log / name).unlink()
                (log / f".{name}.crc").unlink(missing_ok=True)

    def _is_of(self, commit: str, query_id: str, batch: int) -> bool:
        return any(
            action["txn"]["appId"] == query_id and action["txn"]["version"] == batch
            for action in self._read(commit)
            if "txn" in action
        )

    def half_written(self, since: float) -> bool:
        known = {unquote(action["add"]["path"]) for action in self._actions() if "add" in action}
        orphans = self.data_files() - known
        return any((self.table / name).stat().st_mtime >= since for name in orphans)

    def _live(self) -> set[str]:
        live: set[str] = set()
        for action in self._actions():
            if "add" in action:
                live.add(unquote(action["add"]["path"]))
            if "remove" in action:
                live.discard(unquote(action["remove"]["path"]))
        return live

    def _actions(self) -> list[dict[str, Any]]:
        return [action for name in self.commits() for action in self._read(name)]

    def _read(self, commit: str) -> list[dict[str, Any]]:
        text = (self.table / "_delta_log" / commit).read_text()
        return [json.loads(line) for line in text.splitlines()]


class FilesSink:
    """Spark's own file sink: what its log in `_spark_metadata` names, and no other file."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._log = folder / "_spark_metadata"

    def rows(self, columns: tuple[str, ...]) -> Counter[Row]:
        import pyarrow.parquet

        found: Counter[Row] = Counter()
        for path in self._added():
            table = pyarrow.parquet.read_table(path, columns=list(columns))
            found.update(zip(*(table.column(one).to_pylist() for one in columns), strict=True))
        return found

    def _added(self) -> list[str]:
        """Each file as often as the log names it; a compact entry repeats all before it."""
        entries = {
            int(name.partition(".")[0]): name
            for name in sorted(names(self._log))
            if name.partition(".")[0].isdecimal()
        }
        compact = max((n for n, name in entries.items() if name.endswith(".compact")), default=-1)
        lines = [
            line
            for number, name in entries.items()
            if number >= compact
            for line in (self._log / name).read_text().splitlines()[1:]
        ]
        return [unquote(json.loads(line)["path"].removeprefix("file://")) for line in lines]

    def has_batch(self, query_id: str, batch: int) -> bool:
        return any(name.partition(".")[0] == str(batch) for name in names(self._log))

    def half_written(self, since: float) -> bool:
        return False


class PostgresSink:
    """A table without a key: what is written twice stands there twice."""

    def __init__(self, url: str, columns: tuple[str, ...], held: Path) -> None:
        self._plain = url.replace("postgresql+psycopg:", "postgresql:", 1)
        self._held = held
        kinds = ", ".join(f"{one} {'text' if one == 'key' else 'bigint'}" for one in columns)
        self._run(f"CREATE TABLE sink ({kinds})")

    def rows(self, columns: tuple[str, ...]) -> Counter[Row]:
        return Counter(self._run(f"SELECT {', '.join(columns)} FROM sink"))

    def has_batch(self, query_id: str, batch: int) -> bool:
        if not self._run("SELECT to_regclass('_floodmark_batches')")[0][0]:
            return False
        found = self._run(
            "SELECT 1 FROM _floodmark_batches "
            f"WHERE query_id = '{query_id}' AND batch_id = {int(batch)}"
        )
        return bool(found)

    def half_written(self, since: float) -> bool:
        """What a transaction wrote before it died cannot be seen; its marker can."""
        return any(
            name.startswith("during-sink-") and (self._held / name).stat().st_mtime >= since
            for name in names(self._held)
        )

    def _run(self, statement: str) -> list[Row]:
        import psycopg

        with psycopg.connect(self._plain, autocommit=True) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []
