"""What a sink holds, read without Spark: so that no engine marks its own work."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import unquote

from floodmark.engine.drill.killing.logged_batches import BatchRecord, DeltaLog, FilesLog, names

Row = tuple[Any, ...]


class Sink(BatchRecord, Protocol):
    def rows(self, columns: tuple[str, ...]) -> Counter[Row]: ...


class DeltaSink(DeltaLog):
    def rows(self, columns: tuple[str, ...]) -> Counter[Row]:
        return _rows([self.table / name for name in self._live()], columns)

    def take_back(self, query_id: str, batch: int) -> None:
        """As its owner does before a rewind: the versions after that batch's go."""
        log = self.table / "_delta_log"
        versions = [name for name in self.commits() if self.is_of(name, query_id, batch)]
        for name in names(log):
            if name[:20].isdecimal() and (not versions or name[:20] > versions[-1][:20]):
                (log / name).unlink()
                (log / f".{name}.crc").unlink(missing_ok=True)

    def _live(self) -> set[str]:
        live: set[str] = set()
        for action in self.actions():
            if "add" in action:
                live.add(unquote(action["add"]["path"]))
            if "remove" in action:
                live.discard(unquote(action["remove"]["path"]))
        return live


class FilesSink(FilesLog):
    def rows(self, columns: tuple[str, ...]) -> Counter[Row]:
        return _rows([Path(path) for path in self.added()], columns)


def _rows(files: list[Path], columns: tuple[str, ...]) -> Counter[Row]:
    import pyarrow.parquet

    found: Counter[Row] = Counter()
    for path in files:
        table = pyarrow.parquet.read_table(path, columns=list(columns))
        found.update(zip(*(table.column(one).to_pylist() for one in columns), strict=True))
    return found


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
