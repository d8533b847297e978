"""The sinks of the campaign: how a query writes to each, and what it holds, row for row."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from floodmark import once
from floodmark.changes.sinks import DELTA, FILES, REST

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from services.kafka import KafkaServer

Rows = Counter[str]


class Output:
    """A sink at a place of its own. `kind` is the one that a plan speaks of."""

    kind = REST
    note = "foreachBatch"
    modes: tuple[str, ...] = ("append", "update", "complete")

    def __init__(self, spark: SparkSession, place: Path) -> None:
        self.spark = spark
        self.place = place

    def start(self, writer: Any) -> Any:
        return writer.foreachBatch(self.write).start()

    def write(self, batch: DataFrame, batch_id: int) -> None:
        raise NotImplementedError

    def rows(self) -> Rows:
        raise NotImplementedError

    def kept(self) -> set[int] | None:
        """The batches that the sink still shows its readers; None: all that it ever got."""
        return None

    def keep(self, aside: Path) -> None:
        if self.place.exists():
            shutil.copytree(self.place, aside)

    def put_back(self, aside: Path) -> None:
        shutil.rmtree(self.place, ignore_errors=True)
        if aside.exists():
            shutil.copytree(aside, self.place)

    def _read(self, kind: str) -> Rows:
        if not self.place.exists():
            return Counter()
        frame = self.spark.read.format(kind).load(str(self.place))
        return Counter(row["value"] for row in frame.collect())


class FileOutput(Output):
    kind, note = FILES, "parquet"
    modes: tuple[str, ...] = ("append",)

    def start(self, writer: Any) -> Any:
        return writer.format("parquet").start(str(self.place))

    def rows(self) -> Rows:
        return self._read("parquet")

    def kept(self) -> set[int]:
        return {int(p.name) for p in (self.place / "_spark_metadata").glob("[0-9]*")}


class DeltaOutput(Output):
    kind, note = DELTA, "delta"
    modes: tuple[str, ...] = ("append", "complete")

    def start(self, writer: Any) -> Any:
        return writer.format("delta").start(str(self.place))

    def rows(self) -> Rows:
        return self._read("delta")

    def put_back(self, aside: Path) -> None:
        super().put_back(aside)
        jvm: Any = self.spark._jvm
        jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()


class OnceDelta(DeltaOutput):
    note = "foreachBatch"
    modes: tuple[str, ...] = Output.modes

    def start(self, writer: Any) -> Any:
        return writer.foreachBatch(once.delta(str(self.place))).start()


class OnceSql(Output):
    """SQLite in its place, or a database of its own on a server."""

    kind = DELTA

    def __init__(self, spark: SparkSession, place: Path, url: str | None = None) -> None:
        super().__init__(spark, place)
        place.mkdir(exist_ok=True)
        self.url = url or f"sqlite:///{place}/db"
        self._aside: dict[str, list[dict[str, Any]]] = {}

    def start(self, writer: Any) -> Any:
        return writer.foreachBatch(once.sql(self.url, _insert)).start()

    def rows(self) -> Rows:
        return Counter(row["value"] for row in self._tables().get("t", []))

    def keep(self, aside: Path) -> None:
        self._aside = self._tables()

    def put_back(self, aside: Path) -> None:
        from sqlalchemy import delete, insert

        with self._open() as (connection, known):
            for table in known.sorted_tables:
                connection.execute(delete(table))
                rows = self._aside.get(table.name)
                if rows:
                    connection.execute(insert(table), rows)

    def _tables(self) -> dict[str, list[dict[str, Any]]]:
        from sqlalchemy import select

        with self._open() as (connection, known):
            return {
                table.name: [dict(row) for row in connection.execute(select(table)).mappings()]
                for table in known.sorted_tables
            }

    @contextmanager
    def _open(self) -> Iterator[tuple[Any, Any]]:
        from sqlalchemy import MetaData, create_engine

        engine = create_engine(self.url)
        try:
            with engine.begin() as connection:
                known = MetaData()
                known.reflect(connection)
                yield connection, known
        finally:
            engine.dispose()


def _insert(connection: Any, batch: DataFrame, _batch_id: int) -> None:
    import sqlalchemy

    connection.execute(sqlalchemy.text("create table if not exists t (value text)"))
    insert = sqlalchemy.text("insert into t values (:value)")
    for row in batch.collect():
        connection.execute(insert, {"value": row["value"]})


class Append(Output):
    """A foreachBatch that writes what it is given, and remembers nothing."""

    def write(self, batch: DataFrame, batch_id: int) -> None:
        batch.write.mode("append").parquet(str(self.place))

    def rows(self) -> Rows:
        return self._read("parquet")


class KafkaOutput(Output):
    note = "kafka"

    def __init__(self, spark: SparkSession, place: Path, kafka: KafkaServer) -> None:
        super().__init__(spark, place)
        self.kafka = kafka
        self.topic = kafka.create_topic("moves")

    def start(self, writer: Any) -> Any:
        options = {"kafka.bootstrap.servers": self.kafka.bootstrap, "topic": self.topic}
        return writer.format("kafka").options(**options).start()

    def rows(self) -> Rows:
        reader = self.spark.read.format("kafka").option("subscribe", self.topic)
        frame = reader.option("kafka.bootstrap.servers", self.kafka.bootstrap).load()
        return Counter(row["v"] for row in frame.selectExpr("cast(value as string) v").collect())


class Recorded(Output):
    """What a stream emits, batch by batch, with no sink that could skip any of it."""

    def __init__(self, spark: SparkSession) -> None:
        super().__init__(spark, Path())
        self.batches: dict[int, Rows] = {}

    def write(self, batch: DataFrame, batch_id: int) -> None:
        self.batches[batch_id] = Counter(row["value"] for row in batch.collect())


OUTPUTS: dict[str, type[Output]] = {
    "file": FileOutput,
    "delta": DeltaOutput,
    "once.delta": OnceDelta,
    "once.sql": OnceSql,
    "kafka": KafkaOutput,
    "append": Append,
}
