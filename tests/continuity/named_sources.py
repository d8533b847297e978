"""Streams whose sources get names by `convert --name`, and then come, go and change places.

Spark runs two unnamed sources with state; floodmark converts the checkpoint; Spark goes on with
the named sources in another order, with one more, or with one less. A batch query over all files
that were to be read tells what is right. As a program it does so with the Spark that runs it, and
prints what was wrong: `named_sources.py FOLDER [NAME…]`. Scenarios with Kafka need KAFKA, its
address, and CONNECTORS, the jars.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

EVOLUTION = "spark.sql.streaming.queryEvolution.enableSourceEvolution"
PROVIDER = "spark.sql.streaming.stateStore.providerClass"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
SCHEMA = "id long, k string, v long"
NAMES = {"0": "orders", "1": "payments"}


@dataclass(frozen=True)
class NamedScenario:
    name: str
    then: tuple[str, ...]
    """The sources after the conversion, in the plan's order."""
    state: str = "sum"
    rocksdb: bool = False
    in_flight: bool = False
    """The last batch before the conversion is planned and fails in the sink."""
    empty: str | None = None
    """A source that has had no file before the conversion."""
    quick: bool = False
    kafka: tuple[str, ...] = ()
    delta: tuple[str, ...] = ()
    """What is read from Kafka and from Delta tables; the rest are files."""

    @property
    def connectors(self) -> frozenset[str]:
        return frozenset(name for name in ("kafka", "delta") if getattr(self, name))


SCENARIOS = (
    NamedScenario("in their order", ("orders", "payments")),
    NamedScenario("reordered", ("payments", "orders")),
    NamedScenario("reordered and one added", ("refunds", "payments", "orders"), quick=True),
    NamedScenario("one removed", ("payments",)),
    NamedScenario("RocksDB", ("payments", "refunds", "orders"), rocksdb=True),
    NamedScenario("a batch in flight", ("payments", "orders", "refunds"), in_flight=True),
    NamedScenario("RocksDB, in flight", ("payments", "orders"), rocksdb=True, in_flight=True),
    NamedScenario("no offset yet", ("refunds", "payments", "orders"), empty="payments"),
    NamedScenario("distinct rows", ("payments", "refunds", "orders"), state="distinct"),
    NamedScenario("no state", ("payments", "refunds", "orders"), state="none"),
)
_ALL = ("orders", "payments", "refunds")
CONNECTED = (
    NamedScenario("Kafka, one added", ("refunds", "payments", "orders"), kafka=_ALL),
    NamedScenario("Kafka, one removed", ("payments",), kafka=_ALL),
    NamedScenario(
        *("Kafka and files, in flight", ("payments", "refunds", "orders")),
        kafka=("orders", "refunds"),
        rocksdb=True,
        in_flight=True,
    ),
    NamedScenario("Delta, one added", ("refunds", "payments", "orders"), delta=_ALL),
    NamedScenario(
        *("Delta and Kafka, in flight", ("payments", "refunds", "orders")),
        delta=("payments",),
        kafka=("orders", "refunds"),
        in_flight=True,
    ),
    NamedScenario("Delta, distinct rows", ("payments", "orders"), state="distinct", delta=_ALL),
)


def run_named(spark: Any, one: NamedScenario, folder: Path) -> list[str]:
    """What is wrong, in words; nothing where the stream went on as the batch query says."""
    from floodmark import api
    from floodmark.changes.apply import Carrying

    spark.conf.set("spark.sql.codegen.wholeStage", "false")
    spark.conf.set("spark.sql.codegen.factoryMode", "NO_CODEGEN")
    if one.rocksdb:
        spark.conf.set(PROVIDER, ROCKSDB)
    for source in ("orders", "payments", "refunds"):
        (folder / source).mkdir(parents=True)
    old, new = folder / "old", folder / "new"
    kept = _Kept()
    for number in range(2):
        _give(spark, one, folder, number)
        _run(spark, one, folder, old, ("orders", "payments"), False, kept)
    if one.in_flight:
        _give(spark, one, folder, 2)
        kept.fails = True
        _run(spark, one, folder, old, ("orders", "payments"), False, kept)
        kept.fails = False
    wrong = [] if _version(old) == "v1" else ["the old checkpoint's log is not of version 1"]
    # Spark itself refuses names there. 4.2 has no words for it: it fails on the lists of a source
    # of files, and goes on with Kafka's and Delta's, which have none.
    refused = _run(spark, one, folder, old, ("orders", "payments"), True, _Kept())
    fails = "fresh checkpoint" in refused if spark.version >= "4.3" else bool(refused)
    if not fails and (spark.version >= "4.3" or not one.connectors):
        wrong.append(f"Spark did not refuse names: {refused[:200] or 'it went on'}")
    api.convert(str(old), str(new), name=NAMES, carrying=Carrying(True, 0))
    for number in (3, 4):
        _give(spark, one, folder, number, (*one.then, "refunds"))
        failed = _run(spark, one, folder, new, one.then, True, kept)
        if failed:
            return [*wrong, failed]
    if _version(new) != "v2":
        wrong.append("the new checkpoint's log is not of version 2")
    found, wanted = kept.result(one), _wanted(spark, one, folder)
    if found != wanted:
        wrong.append(f"emitted {found}, not {wanted}")
    return wrong


class _Kept:
    """A sink that has each batch once, or fails."""

    def __init__(self) -> None:
        self.batches: dict[int, list[Any]] = {}
        self.fails = False

    def __call__(self, rows: Any, number: int) -> None:
        if self.fails:
            raise RuntimeError("the sink is away")
        self.batches[number] = [tuple(row) for row in rows.collect()]

    def result(self, one: NamedScenario) -> list[Any]:
        rows = [row for number in sorted(self.batches) for row in self.batches[number]]
        return sorted(dict(rows).items() if one.state == "sum" else rows)


def _give(
    spark: Any,
    one: NamedScenario,
    folder: Path,
    number: int,
    sources: tuple[str, ...] = ("orders", "payments"),
) -> None:
    """As files, which the batch query reads, and into Kafka or a table, where the stream does."""
    for at, source in enumerate(("orders", "payments", "refunds")):
        if source not in sources or (source == one.empty and number < 3):
            continue
        rows = [
            {"id": i % 7 + at, "k": f"k{(i + at) % 5}", "v": 100 * number + 10 * at + i}
            for i in range(12)
        ]
        text = "".join(json.dumps(row) + "\n" for row in rows)
        file = folder / source / f"{number}.json"
        file.write_text(text)
        if source in one.kafka:
            lines = spark.read.text(str(file)).coalesce(1).write.format("kafka")
            lines = lines.option("kafka.bootstrap.servers", os.environ["KAFKA"])
            lines.option("topic", _topic(folder, source)).save()
        elif source in one.delta:
            written = spark.read.schema(SCHEMA).json(str(file)).coalesce(1).write.format("delta")
            written.mode("append").save(str(folder / f"{source}-delta"))


def _topic(folder: Path, source: str) -> str:
    topics: dict[str, str] = json.loads(os.environ["TOPICS"])
    return topics[f"{folder.name}-{source}"]


def _stream(spark: Any, one: NamedScenario, folder: Path, source: str, name: str | None) -> Any:
    from pyspark.sql import functions

    def named(reader: Any) -> Any:
        return reader if name is None else reader.name(name)

    if source in one.kafka:
        reader = spark.readStream.format("kafka").option("maxOffsetsPerTrigger", 12)
        reader = reader.option("kafka.bootstrap.servers", os.environ["KAFKA"])
        reader = reader.option("startingOffsets", "earliest")
        records = named(reader.option("subscribe", _topic(folder, source))).load()
        value = functions.col("value").cast("string")
        return records.select(functions.from_json(value, SCHEMA).alias("row")).select("row.*")
    if source in one.delta:
        reader = spark.readStream.format("delta").option("maxFilesPerTrigger", 1)
        return named(reader).load(str(folder / f"{source}-delta"))
    reader = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
    return named(reader).json(str(folder / source))


def _rows(read: Callable[[str], Any], one: NamedScenario, order: tuple[str, ...]) -> Any:
    from pyspark.sql import functions

    streams = [read(source) for source in order]
    rows = streams[0]
    for other in streams[1:]:
        rows = rows.unionByName(other)
    if one.state == "sum":
        return rows.groupBy("k").agg(functions.sum("v").alias("total"))
    if one.state == "distinct":
        return rows.dropDuplicates(["id", "k"]).select("id", "k")
    return rows.select("k", "v")


def _run(
    spark: Any,
    one: NamedScenario,
    folder: Path,
    checkpoint: Path,
    order: tuple[str, ...],
    named: bool,
    kept: _Kept,
) -> str:
    """What Spark said, where it failed."""
    spark.conf.set(EVOLUTION, str(named).lower())

    def read(source: str) -> Any:
        return _stream(spark, one, folder, source, source if named else None)

    try:
        rows = _rows(read, one, order)
        mode = "update" if one.state == "sum" else "append"
        writer = rows.writeStream.outputMode(mode).foreachBatch(kept)
        writer = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
        query = writer.start()
        query.awaitTermination()
    except Exception as error:
        return str(error)
    finally:
        spark.conf.set(EVOLUTION, "false")
    return ""


def _version(checkpoint: Path) -> str:
    newest = max((checkpoint / "offsets").glob("[0-9]*"), key=lambda path: int(path.name))
    return newest.read_text().partition("\n")[0]


def _wanted(spark: Any, one: NamedScenario, folder: Path) -> list[Any]:
    every = [source for source in ("orders", "payments", "refunds") if _is_read(one, source)]
    rows = _rows(
        lambda source: spark.read.schema(SCHEMA).json(
            [str(path) for path in sorted((folder / source).iterdir()) if _was_read(one, path)]
        ),
        one,
        tuple(every),
    )
    return sorted(tuple(row) for row in rows.collect())


def _is_read(one: NamedScenario, source: str) -> bool:
    return source in ("orders", "payments") or source in one.then


def _was_read(one: NamedScenario, path: Path) -> bool:
    """A source that has gone has given what came before the conversion."""
    return path.parent.name in one.then or int(path.stem) < 3


def chosen(names: tuple[str, ...]) -> Iterator[NamedScenario]:
    return (one for one in (*SCENARIOS, *CONNECTED) if _is_chosen(one, names))


def _is_chosen(one: NamedScenario, names: tuple[str, ...]) -> bool:
    return one.name in names if names else not one.connectors


def main(folder: Path, *names: str) -> int:
    from continuity_matrix import session

    spark = session(folder)
    spark.sparkContext.setLogLevel("OFF")
    wrong = {}
    for number, one in enumerate(chosen(names)):
        found = run_named(spark.newSession(), one, folder / str(number))
        print(json.dumps({"name": one.name, "wrong": found}), flush=True)
        wrong.update({one.name: found} if found else {})
    spark.stop()
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), *sys.argv[2:]))
