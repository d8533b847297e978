"""Queries of every stateful operator, run to their end, and each of their batches replayed.

They read files, a Delta table or a Kafka topic, of the same rows.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "continuity"))

from continuity_matrix import KEPT, SCHEMA, run_script, settings, write_app, write_half
from scenarios import Scenario, scenarios

from floodmark import api

__all__ = ["KAFKA", "SCHEMA", "Replayed", "delta_source", "kafka_rows", "operators", "replay_all"]
KAFKA = """(
    spark.readStream.format("kafka").option("kafka.bootstrap.servers", {servers!r})
    .option("subscribe", {topic!r}).option("startingOffsets", "earliest")
    .option("maxOffsetsPerTrigger", 5).load()
    .select(F.from_json(F.col("value").cast("string"), {schema!r}).alias("row")).select("row.*")
)"""
DELTA = """(
    spark.readStream.format("delta").option("maxFilesPerTrigger", 1).load({table!r})
)"""


def operators() -> Iterator[Scenario]:
    """One scenario for each old code, provider and setting."""
    seen = set()
    for one in scenarios():
        name = (one.old, one.mode, one.provider, tuple(one.conf.items()))
        if name not in seen:
            seen.add(name)
            yield one


@dataclass(frozen=True)
class Replayed:
    name: str
    batches: int
    stateful: bool
    wrong: tuple[str, ...]


def delta_source(spark: Any, folder: Path) -> str:
    """Code that reads the rows of both halves from a Delta table, a file of theirs a commit."""
    for file in _files(folder / "rows"):
        rows = spark.read.schema(SCHEMA).json(str(file)).coalesce(1)
        rows.write.format("delta").mode("append").save(str(folder / "table"))
    return DELTA.format(table=str(folder / "table"))


def kafka_rows(folder: Path) -> list[str]:
    return [line for file in _files(folder / "rows") for line in file.read_text().splitlines()]


def _files(folder: Path) -> list[Path]:
    write_half(folder, 1)
    write_half(folder, 2)
    return sorted(folder.glob("*.json"))


def replay_all(spark: Any, one: Scenario, folder: Path, events: str | None = None) -> Replayed:
    """Runs the old code as a plain script over both halves, then every batch again.

    `events` is the code that reads them, if it is not files.
    """
    folder.mkdir(parents=True)
    source, place = folder / "input", folder / "ck"
    app = write_app(folder / "app.py", one.old, one, source, place, script=True)
    if events is not None:
        text = Path(app).read_text()
        (line,) = (line for line in text.splitlines() if line.startswith("events = "))
        Path(app).write_text(text.replace(line, f"events = {events}"))
    wrong = []
    with settings(spark, one):
        if events is None:
            _files(source)
        run_script(app, place)
        emitted = list(KEPT[app])
        before = files_of(place)
        stateful, count = False, 0
        for batch in api.batches(str(place)):
            count += 1
            (again,) = api.replay(str(place), batch.batch, app=app).batches
            stateful = stateful or again.matches_checkpoint is not None
            wanted = None if one.operator == "no state" else True
            if again.matches_checkpoint is not wanted:
                wrong.append(
                    f"batch {batch.batch}: {again.matches_checkpoint} {again.not_compared} "
                    f"{again.differences}"
                )
            rows = sum(number == batch.batch for number, _ in emitted)
            if again.output_rows != rows:
                wrong.append(f"batch {batch.batch}: {again.output_rows} rows, not {rows}")
        if files_of(place) != before:
            wrong.append("the checkpoint was changed")
        if len(KEPT[app]) != len(emitted):
            wrong.append("the foreachBatch function was called")
    return Replayed(one.name, count, stateful, tuple(wrong))


def files_of(place: Path) -> dict[str, tuple[int, bytes]]:
    return {
        str(path): (path.stat().st_ino, path.read_bytes())
        for path in sorted(place.rglob("*"))
        if path.is_file()
    }
