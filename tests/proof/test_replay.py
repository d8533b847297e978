"""A batch that is run again gives the checkpoint's own state, and leaves everything as it was."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from replays import KAFKA, SCHEMA, delta_source, files_of, kafka_rows, operators, replay_all

import samples
from floodmark import api
from floodmark.engine.proof.planned_batches import require_range
from floodmark.errors import BatchPurged, NotEmpty, WouldLose, WrongUse
from floodmark.storage.files import open_files
from floodmark.storage.load import Entries, load

pytestmark = pytest.mark.spark

SCRIPT = """\
from pyspark.sql import SparkSession, functions as F

spark = SparkSession.builder.getOrCreate()
rows = spark.readStream.schema("k string, v long").option("maxFilesPerTrigger", 1).json({source!r})
totals = rows.groupBy("k").agg(F.sum("v").alias("total"))
def save(frame, batch):
    with open({log!r}, "a") as log:
        log.write(f"{{batch}} {{frame.count()}}\\n")
writer = totals.writeStream.outputMode("update").foreachBatch(save)
writer.option("checkpointLocation", {checkpoint!r}).trigger(availableNow=True).start()\\
    .awaitTermination()
"""
FILES = (
    [("a", 1), ("b", 2)],
    [("a", 10), ("c", 3)],
    [("b", 20)],
)


class Totals:
    """Three batches of a plain script; floodmark has never seen it."""

    def __init__(self, folder: Path) -> None:
        self.source, self.place = folder / "in", folder / "ck"
        self.log = folder / "called"
        self.app = folder / "totals.py"
        self.app.write_text(
            SCRIPT.format(source=str(self.source), log=str(self.log), checkpoint=str(self.place))
        )
        self.source.mkdir(parents=True)
        for number, rows in enumerate(FILES):
            path = self.source / f"{number}.json"
            path.write_text("".join(json.dumps({"k": k, "v": v}) + "\n" for k, v in rows))
            os.utime(path, (1_700_000_000 + number,) * 2)

    def run(self) -> None:
        import runpy

        runpy.run_path(str(self.app), run_name="__main__")

    def replay(self, batch: int | None = None, **named: Any) -> Any:
        return api.replay(str(self.place), batch, app=str(self.app), **named)


@pytest.fixture(scope="module")
def totals(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Totals:
    made = Totals(tmp_path_factory.mktemp("totals"))
    made.run()
    return made


def test_a_batch_shows_what_it_read_put_out_and_changed(totals: Totals, tmp_path: Path) -> None:
    before, called = files_of(totals.place), totals.log.read_text()
    found = totals.replay(1, export=str(tmp_path / "rows"))
    (one,) = found.batches
    assert [(source.source, source.rows) for source in one.input] == [("0", 2)]
    assert sorted(map(dict, one.rows), key=str) == [
        {"k": "a", "total": 11},
        {"k": "c", "total": 3},
    ]
    assert (one.output_rows, one.state.added, one.state.changed, one.state.removed) == (2, 1, 1, 0)
    assert one.matches_checkpoint is True
    assert one.phases["triggerExecution"] > 0
    assert found.foreach_batch == "not-called"
    assert found.same_code is None, "nobody has noted the code"
    from pyarrow import parquet

    table = parquet.read_table(tmp_path / "rows" / "batch=1" / "rows.parquet")
    assert sorted(table.to_pylist(), key=str) == sorted(map(dict, one.rows), key=str)
    assert files_of(totals.place) == before
    assert totals.log.read_text() == called


def test_a_range_and_one_key(totals: Totals) -> None:
    found = totals.replay(batches=(0, 2), key={"k": "b"})
    shown = [[dict(row) for row in one.rows] for one in found.batches]
    assert shown == [[{"k": "b", "total": 2}], [], [{"k": "b", "total": 22}]]
    changes = [[c.change for s in one.state_changes for c in s.keys.first] for one in found.batches]
    assert changes == [["added"], [], ["changed"]]
    assert found.matches_checkpoint is True


def test_other_code_gives_another_state(totals: Totals) -> None:
    app = totals.app.with_name("twice.py")
    app.write_text(totals.app.read_text().replace('F.sum("v")', 'F.sum(F.col("v") * 2)'))
    (one,) = api.replay(str(totals.place), 2, app=str(app)).batches
    assert one.matches_checkpoint is False
    (store,) = one.differences
    assert store.keys is not None
    (change,) = store.keys.first
    assert (change.key, change.before, change.after) == (
        {"k": "b"},
        ({"sum": 22},),
        ({"sum": 42},),
    )


def test_what_is_not_deterministic_is_found(spark: Any, tmp_path: Path) -> None:
    made = Totals(tmp_path)
    random = 'rows.withColumn("v", F.expr("v + cast(rand() * 1000000000 as long)"))'
    made.app.write_text(made.app.read_text().replace("totals = rows", f"totals = {random}"))
    made.run()
    (one,) = made.replay(1).batches
    assert one.matches_checkpoint is False
    changed = {change.key["k"] for store in one.differences for change in store.keys.first}
    assert changed == {"a", "c"}, "of the keys of the batch; b is as it was"


def test_the_function_is_called_where_that_is_asked_for(totals: Totals) -> None:
    called = totals.log.read_text()
    found = totals.replay(2, call_foreach_batch=True)
    assert found.foreach_batch == "called"
    assert found.batches[0].output_rows == 1
    assert totals.log.read_text() == called + "2 1\n"


def test_the_fork_links_the_state(totals: Totals, monkeypatch: pytest.MonkeyPatch) -> None:
    from floodmark.storage import file_copy

    linked: list[str] = []
    written: list[str] = []
    true = file_copy._linked

    def noted(*given: Any) -> bool:
        done = true(*given)
        (linked if done else written).append(given[4])
        return done

    monkeypatch.setattr(file_copy, "_linked", noted)
    totals.replay(2, scratch=str(totals.place.parent / "scratch"))
    assert [path for path in linked if path.endswith((".delta", ".snapshot"))]
    assert written == []
    assert not (totals.place.parent / "scratch").exists()


def test_bad_input_gets_a_sentence(totals: Totals, tmp_path: Path) -> None:
    with pytest.raises(WrongUse, match="no batch 7 yet"):
        totals.replay(7)
    with pytest.raises(WrongUse, match="no batch -1"):
        totals.replay(-1)
    with pytest.raises(WrongUse, match="batch 2 is after batch 1"):
        totals.replay(batches=(2, 1))
    with pytest.raises(WrongUse, match="name the batch"):
        totals.replay()
    with pytest.raises(WrongUse, match="neither output nor state has a field 'customer'"):
        totals.replay(1, key={"customer": "a"})
    with pytest.raises(WrongUse, match="no note"):
        api.replay(str(totals.place), 1)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("mine")
    for option in ("scratch", "export"):
        with pytest.raises(NotEmpty, match="not empty"):
            totals.replay(1, **{option: str(tmp_path / "full")})
    assert (tmp_path / "full" / "file").read_text() == "mine"


def test_a_range_across_a_rewind_is_refused(tmp_path: Path) -> None:
    """Where a log was taken back, one entry ends before the one in front of it."""
    cp = samples.write(tmp_path / "cp", samples.sales(10))
    checkpoint = load(open_files(str(cp)), Entries.ALL)
    require_range(checkpoint, 2, 8)
    entries = {**checkpoint.offsets, 6: checkpoint.offsets[3]}
    rewound = replace(checkpoint, offsets=entries)
    with pytest.raises(WrongUse, match="batch 6 ends before it begins"):
        require_range(rewound, 5, 7)
    require_range(rewound, 1, 5)


def test_other_sources_are_refused(totals: Totals, tmp_path: Path) -> None:
    other = tmp_path / "other.py"
    text = totals.app.read_text()
    other.write_text(text.replace("totals = rows", "totals = rows.union(rows.select('k', 'v'))"))
    with pytest.raises(WrongUse, match="reads 2 sources; batch 1 was planned for 1 source"):
        api.replay(str(totals.place), 1, app=str(other))


def test_input_or_state_that_is_gone_is_named(spark: Any, tmp_path: Path) -> None:
    made = Totals(tmp_path)
    made.run()
    (made.source / "1.json").rename(tmp_path / "away.json")
    with pytest.raises(WouldLose, match=r"1\.json") as raised:
        made.replay(1)
    assert "or choose batch 2, the next batch" in raised.value.do
    (made.source / "2.json").rename(tmp_path / "away-too.json")
    with pytest.raises(WouldLose, match=r"1\.json") as raised:
        made.replay(1)
    assert "no later batch has its input" in raised.value.do
    (tmp_path / "away-too.json").rename(made.source / "2.json")
    assert made.replay(0).matches_checkpoint
    for file in made.place.glob("state/0/*/1.delta"):
        file.unlink()
    with pytest.raises(BatchPurged, match="oldest batch that can be replayed is 0"):
        made.replay(2)
    (made.place / "offsets" / "0").unlink()
    with pytest.raises(BatchPurged, match="offsets/0"):
        made.replay(0)


def test_the_application_of_the_last_start(spark: Any, tmp_path: Path) -> None:
    """Its path, its pipeline and its parameters stand in the note of the start."""
    made = Totals(tmp_path)
    app = tmp_path / "app.py"
    app.write_text(f"""\
from floodmark import pipeline
from pyspark.sql import functions as F


@pipeline(checkpoint={str(made.place)!r})
def totals(spark, start, source: str, most: int = 9, table: str = "a"):
    rows = spark.readStream.schema("k string, v long").json(source)
    return rows.where(F.col("v") < most).writeStream.format("noop")
""")
    given = {"source": str(made.source), "most": "3", "table": "b"}
    api.run(str(app), available_now=True, settings=given)
    with pytest.raises(WrongUse, match="source"):
        api.replay(str(made.place), 0)
    with pytest.raises(WrongUse, match="another value of table"):
        api.replay(str(made.place), 0, settings={"source": str(made.source)})
    del given["most"]  # a number, which the note shows
    found = api.replay(str(made.place), 0, settings=given)
    assert found.same_code is True
    assert found.batches[0].output_rows == 2
    assert found.matches_checkpoint is None, "it keeps no state"
    app.rename(tmp_path / "moved.py")
    with pytest.raises(WrongUse, match="is not here"):
        api.replay(str(made.place), 0)


QUICK = (
    "stream-stream join: outer, a column less (rocksdb)",
    "deduplication within a watermark: a column less (hdfs)",
)


@pytest.mark.parametrize("name", QUICK)
def test_each_batch_of_an_operator(spark: Any, name: str, tmp_path: Path) -> None:
    (one,) = (one for one in operators() if one.name == name)
    found = replay_all(spark, one, tmp_path / "run")
    assert found.wrong == ()
    assert found.stateful


def _require_the_same(one: Any, found: Any) -> None:
    assert found.wrong == ()
    assert found.stateful or one.operator == "no state"
    assert found.batches >= 3


@pytest.mark.soak
@pytest.mark.parametrize("one", list(operators()), ids=lambda one: one.name)
def test_every_operator(spark: Any, one: Any, tmp_path: Path) -> None:
    _require_the_same(one, replay_all(spark, one, tmp_path / "run"))


@pytest.fixture(scope="module")
def delta_events(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> str:
    return delta_source(spark, tmp_path_factory.mktemp("delta"))


@pytest.fixture(scope="module")
def kafka_events(kafka: Any, tmp_path_factory: pytest.TempPathFactory) -> str:
    topic = kafka.create_topic("replayed-operators", partitions=1)
    kafka.produce(topic, kafka_rows(tmp_path_factory.mktemp("kafka")))
    return KAFKA.format(servers=kafka.bootstrap, topic=topic, schema=SCHEMA)


@pytest.mark.soak
@pytest.mark.parametrize("one", list(operators()), ids=lambda one: one.name)
def test_every_operator_on_delta(spark: Any, delta_events: str, one: Any, tmp_path: Path) -> None:
    _require_the_same(one, replay_all(spark, one, tmp_path / "run", delta_events))


@pytest.mark.soak
@pytest.mark.services
@pytest.mark.parametrize("one", list(operators()), ids=lambda one: one.name)
def test_every_operator_on_kafka(spark: Any, kafka_events: str, one: Any, tmp_path: Path) -> None:
    _require_the_same(one, replay_all(spark, one, tmp_path / "run", kafka_events))


SOURCES = """\
from pyspark.sql import SparkSession, functions as F

spark = SparkSession.builder.getOrCreate().newSession()
spark.conf.set({provider!r}, {provider_class!r})
rows = {rows}
totals = rows.withWatermark("at", "1 minute").groupBy("k").agg(F.sum("v").alias("total"))
totals.writeStream.outputMode("update").format("noop").option("checkpointLocation", {place!r})\\
    .trigger(availableNow=True).start().awaitTermination()
"""
STATE = "org.apache.spark.sql.execution.streaming.state"
PROVIDERS = ("HDFSBackedStateStoreProvider", "RocksDBStateStoreProvider")


def _replays_by(tmp_path: Path, rows: str, provider: str, feed: Any) -> None:
    """Three runs with something new in each; then each batch of them again."""
    app, place = tmp_path / "app.py", tmp_path / "ck"
    app.write_text(
        SOURCES.format(
            rows=rows,
            place=str(place),
            provider="spark.sql.streaming.stateStore.providerClass",
            provider_class=f"{STATE}.{provider}",
        )
    )
    import runpy

    for number in range(3):
        feed(number)
        runpy.run_path(str(app), run_name="__main__")
    logged = [one.batch for one in api.batches(str(place))]
    assert len(logged) >= 3
    read = []
    for batch in logged:
        (one,) = api.replay(str(place), batch, app=str(app)).batches
        assert one.matches_checkpoint is True, (batch, one.differences, one.not_compared)
        read += [source.rows for source in one.input]
    # A batch that only moves the watermark reads nothing.
    assert [rows for rows in read if rows] == [4, 4, 4]


@pytest.mark.soak
@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_delta_source(spark: Any, provider: str, tmp_path: Path) -> None:
    table = str(tmp_path / "table")

    def feed(number: int) -> None:
        rows = [("abc"[at % 3], number * 10 + at) for at in range(4)]
        frame = spark.createDataFrame(rows, "k string, v long").selectExpr("*", "now() AS at")
        frame.write.format("delta").mode("append").save(table)

    _replays_by(tmp_path, f'spark.readStream.format("delta").load({table!r})', provider, feed)


@pytest.mark.soak
@pytest.mark.services
@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_kafka_source(spark: Any, kafka: Any, provider: str, tmp_path: Path) -> None:
    from confluent_kafka import Producer

    topic = kafka.create_topic(f"replayed-{provider.lower()}")
    producer = Producer({"bootstrap.servers": kafka.bootstrap})

    def feed(number: int) -> None:
        for at in range(4):
            producer.produce(topic, key="abc"[at % 3], value=str(number * 10 + at))
        producer.flush()

    rows = (
        f'spark.readStream.format("kafka").option("subscribe", {topic!r})'
        f'.option("kafka.bootstrap.servers", {kafka.bootstrap!r})'
        '.option("startingOffsets", "earliest").load().selectExpr("CAST(key AS STRING) AS k", '
        '"CAST(CAST(value AS STRING) AS LONG) AS v", "timestamp AS at")'
    )
    _replays_by(tmp_path, rows, provider, feed)
