"""The sources of the campaign: how each is fed and read, and which pieces a batch took of it.

A piece is what is fed at once: a file, a version of a Delta table, two records of a topic.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from floodmark import api
from floodmark.checkpoint.offsets import parse_offsets
from floodmark.connectors.files.input_files import Taken
from floodmark.connectors.kafka.offset import parse_kafka_initial
from floodmark.engine.pipelines.start_positions import Start, read_start

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from services.kafka import KafkaServer

SCHEMA = "id long, key string"
Row = dict[str, Any]
Pieces = dict[int, set[str]]
START = "_floodmark/start.json"


class Input:
    """`place` is a folder of its own."""

    resets = False
    """It can be put back to what it had; else it grows from one move to the next."""

    def __init__(self, spark: SparkSession, place: Path) -> None:
        self.spark = spark
        self.place = place

    def feed(self, number: int, rows: list[Row]) -> None:
        raise NotImplementedError

    def read(self, checkpoint: Path) -> DataFrame:
        raise NotImplementedError

    def given_back(self, batch: int, checkpoint: Path) -> dict[str, Any]:
        """What --to-offsets is given for the end of a batch."""
        return {"0": json.loads(_offset(checkpoint, batch))}

    def pieces(self, checkpoint: Path) -> Pieces:
        """Which pieces each batch of the log took, by where it began and ended."""
        batches = sorted(int(path.name) for path in (checkpoint / "offsets").glob("[0-9]*"))
        found: Pieces = {}
        for batch in batches:
            began = self._began(checkpoint)
            if batch - 1 in batches:
                began = self.position(_offset(checkpoint, batch - 1))
            ended = self.position(_offset(checkpoint, batch))
            found[batch] = {str(number) for number in range(began, ended)}
        return found

    def position(self, offset: str) -> int:
        raise NotImplementedError

    def _began(self, checkpoint: Path) -> int:
        return 0


def _offset(checkpoint: Path, batch: int) -> str:
    entry = parse_offsets((checkpoint / f"offsets/{batch}").read_bytes())
    return str(dict(entry.offsets)["0"])


class FileInput(Input):
    resets = True

    def feed(self, number: int, rows: list[Row]) -> None:
        self.place.mkdir(parents=True, exist_ok=True)
        path = self.place / str(number)
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        os.utime(path, (1_790_000_000 + number * 60,) * 2)

    def read(self, checkpoint: Path) -> DataFrame:
        reader = self.spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
        return reader.json(str(self.place))

    def pieces(self, checkpoint: Path) -> Pieces:
        found: Pieces = {}
        for file in api.files(str(checkpoint)):
            if file.taken is Taken.BY_BATCH and file.batch is not None:
                found.setdefault(file.batch, set()).add(Path(file.path).name)
        return found


class KafkaInput(Input):
    def __init__(self, spark: SparkSession, place: Path, kafka: KafkaServer) -> None:
        super().__init__(spark, place)
        self.kafka = kafka
        self.topic = kafka.create_topic("moved", 1)

    def feed(self, number: int, rows: list[Row]) -> None:
        self.kafka.produce(self.topic, [json.dumps(row) for row in rows])

    def read(self, checkpoint: Path) -> DataFrame:
        options = {
            "kafka.bootstrap.servers": self.kafka.bootstrap,
            "subscribe": self.topic,
            "startingOffsets": "earliest",
        }
        frame = self.spark.readStream.format("kafka").options(**options).load()
        return frame.selectExpr(f"from_json(cast(value as string), '{SCHEMA}') v").select("v.*")

    def position(self, offset: str) -> int:
        return int(json.loads(offset)[self.topic]["0"]) // 2

    def _began(self, checkpoint: Path) -> int:
        initial = parse_kafka_initial((checkpoint / "sources/0/0").read_bytes())
        return int(initial.offset[self.topic][0]) // 2


class DeltaInput(Input):
    def feed(self, number: int, rows: list[Row]) -> None:
        frame = self.spark.createDataFrame([tuple(row.values()) for row in rows], SCHEMA)
        frame.coalesce(1).write.format("delta").mode("append").save(str(self.place))

    def read(self, checkpoint: Path) -> DataFrame:
        options = self._start(checkpoint).delta()
        return self.spark.readStream.format("delta").options(**options).load(str(self.place))

    def position(self, offset: str) -> int:
        at = json.loads(offset)
        return int(at["reservoirVersion"]) + (int(at["index"]) >= 0)

    def _start(self, checkpoint: Path) -> Start:
        path = checkpoint / START
        return read_start(path) if path.exists() else Start()

    def _began(self, checkpoint: Path) -> int:
        return int(self._start(checkpoint).delta().get("startingVersion", 0))


def put_back(place: Path, aside: Path) -> None:
    shutil.rmtree(place, ignore_errors=True)
    if aside.exists():
        shutil.copytree(aside, place)


INPUTS: dict[str, type[Input]] = {"files": FileInput, "kafka": KafkaInput, "delta": DeltaInput}
