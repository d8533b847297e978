"""The known input: a seeded stream of events, fed to files, Kafka or a Delta table."""

from __future__ import annotations

import json
import random
import time
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from services.kafka import KafkaServer

ROWS = 12
"""Of a portion, which is one batch for every source."""
_KEYS = 8
_REPEATED = 0.2


@dataclass(frozen=True)
class Event:
    id: int
    key: str
    amount: int


class Events:
    """Every event made so far; some come again, for a deduplication to find."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self.made: list[Event] = []

    def portion(self) -> list[Event]:
        for _ in range(ROWS):
            self.made.append(self._next())
        return self.made[-ROWS:]

    def _next(self) -> Event:
        if self.made and self._rng.random() < _REPEATED:
            return self._rng.choice(self.made)
        number = len(self.made) * 100 + self._rng.randrange(100)
        return Event(number, f"k{self._rng.randrange(_KEYS)}", self._rng.randrange(1, 1000))


class Input(Protocol):
    def feed(self, portion: list[Event]) -> None: ...


def _lines(portion: list[Event]) -> list[str]:
    return [json.dumps(vars(event)) for event in portion]


class FileInput:
    def __init__(self, base: Path) -> None:
        self._folder = base / "input"
        self._folder.mkdir()
        self._number = 0

    def feed(self, portion: list[Event]) -> None:
        beside = self._folder.parent / ".portion"
        beside.write_text("\n".join(_lines(portion)))
        # Whole or not at all: the source lists the folder while we write.
        beside.rename(self._folder / f"{self._number:05d}.json")
        self._number += 1


class KafkaInput:
    def __init__(self, server: KafkaServer) -> None:
        self._server = server
        self.topic = server.create_topic("chaos", partitions=2)

    def feed(self, portion: list[Event]) -> None:
        self._server.produce(self.topic, _lines(portion))


class DeltaInput:
    """A Delta table written by its protocol alone: a commit and a file a portion, no JVM."""

    def __init__(self, table: Path) -> None:
        self._table = table
        (self._table / "_delta_log").mkdir(parents=True)
        fields = [("id", "long"), ("key", "string"), ("amount", "long")]
        schema = {
            "type": "struct",
            "fields": [
                {"name": name, "type": kind, "nullable": True, "metadata": {}}
                for name, kind in fields
            ],
        }
        self._version = 0
        self._commit(
            {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
            {
                "metaData": {
                    "id": str(uuid.uuid4()),
                    "format": {"provider": "parquet", "options": {}},
                    "schemaString": json.dumps(schema),
                    "partitionColumns": [],
                    "configuration": {},
                    "createdTime": _now_ms(),
                }
            },
        )

    def feed(self, portion: list[Event]) -> None:
        import pyarrow
        import pyarrow.parquet

        name = f"part-00000-{uuid.uuid4()}-c000.snappy.parquet"
        rows = pyarrow.Table.from_pylist([vars(event) for event in portion])
        pyarrow.parquet.write_table(rows, self._table / name)
        self._commit(
            {
                "add": {
                    "path": name,
                    "partitionValues": {},
                    "size": (self._table / name).stat().st_size,
                    "modificationTime": _now_ms(),
                    "dataChange": True,
                }
            }
        )

    def _commit(self, *actions: object) -> None:
        beside = self._table / "_delta_log" / ".commit.tmp"
        beside.write_text("\n".join(json.dumps(action) for action in actions) + "\n")
        beside.rename(self._table / "_delta_log" / f"{self._version:020d}.json")
        self._version += 1


def _now_ms() -> int:
    return int(time.time() * 1000)


def distinct(events: list[Event]) -> list[Event]:
    return list({event.id: event for event in events}.values())


def totals(events: list[Event]) -> dict[str, tuple[int, int]]:
    """key → (sum, number): what a batch query over all input gives."""
    found: dict[str, tuple[int, int]] = {}
    for event in events:
        total, number = found.get(event.key, (0, 0))
        found[event.key] = (total + event.amount, number + 1)
    return found
