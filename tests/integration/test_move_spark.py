"""Moved streams, run on by Spark itself: the sink must equal a batch query over all input."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import floodmark
from carried import GO
from chaos.sinks import DeltaSink
from floodmark import api
from floodmark.changes.apply import Carrying
from floodmark.errors import Refused, WouldLose, WrongUse

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

SCHEMA = "customer string, amount long"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
HDFS = "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"
PROVIDER = "spark.sql.streaming.stateStore.providerClass"
CHANGELOG = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"
Shape = Callable[["DataFrame"], "DataFrame"]


class Stream:
    """Files of orders in, a Delta table out; each file is a batch."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark = spark
        self.folder = folder
        self.input = folder / "in"
        self.input.mkdir()
        self.out = folder / "out"
        self.files = 0

    @property
    def cp(self) -> Path:
        return self.folder / "cp"

    def feed(self, files: int = 1) -> None:
        for _ in range(files):
            rows = [{"customer": f"c{i % 3}", "amount": 10 * self.files + i} for i in range(5)]
            text = "\n".join(json.dumps(row) for row in rows)
            (self.input / f"{self.files:03}.json").write_text(text)
            self.files += 1

    def read(self) -> DataFrame:
        reader = self.spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
        return reader.json(str(self.input))

    def run(
        self,
        checkpoint: Path,
        shape: Shape = lambda frame: frame,
        mode: str = "append",
        out: Path | None = None,
        kind: str = "delta",
        source: DataFrame | None = None,
    ) -> None:
        frame = shape(self.read() if source is None else source)
        query = (
            frame.writeStream.format(kind)
            .outputMode(mode)
            .option("checkpointLocation", str(checkpoint))
            .trigger(availableNow=True)
            .start(str(out or self.out))
        )
        query.awaitTermination(300)
        assert not query.isActive

    def expected(self, shape: Shape = lambda frame: frame) -> list[Any]:
        return rows(shape(self.spark.read.schema(SCHEMA).json(str(self.input))))

    def found(self, kind: str = "delta") -> list[Any]:
        return rows(self.spark.read.format(kind).load(str(self.out)))


def rows(frame: DataFrame) -> list[Any]:
    return sorted(tuple(row) for row in frame.collect())


def totals(frame: DataFrame) -> DataFrame:
    return frame.groupBy("customer").sum("amount").withColumnRenamed("sum(amount)", "total")


def uncommit(checkpoint: Path) -> int:
    """As after a crash between the sink's commit and Spark's own."""
    last = max(int(path.name) for path in (checkpoint / "commits").glob("[0-9]*"))
    (checkpoint / "commits" / str(last)).unlink()
    (checkpoint / "commits" / f".{last}.crc").unlink(missing_ok=True)
    return last


@pytest.fixture
def stream(spark: SparkSession, tmp_path: Path) -> Stream:
    return Stream(spark, tmp_path)


@pytest.fixture
def conf(spark: SparkSession) -> Any:
    """Settings for one test."""
    before: dict[str, str | None] = {}

    def set_all(values: Mapping[str, str]) -> None:
        for key, value in values.items():
            before.setdefault(key, spark.conf.get(key, None))
            spark.conf.set(key, value)

    yield set_all
    for key, value in before.items():
        if value is None:
            spark.conf.unset(key)
        else:
            spark.conf.set(key, value)


def test_upgrade_runs_the_in_flight_batch_again_and_the_sink_skips_it(stream: Stream) -> None:
    stream.feed(3)
    stream.run(stream.cp)
    in_flight = uncommit(stream.cp)
    new = stream.folder / "new"
    api.upgrade(str(stream.cp), str(new), carrying=GO)
    assert api.inspect(str(new)).in_flight_batch == in_flight
    stream.feed(2)
    stream.run(new)
    assert stream.found() == stream.expected()


@pytest.mark.parametrize("provider", [HDFS, ROCKSDB], ids=["hdfs", "rocksdb"])
def test_upgrade_carries_the_state(stream: Stream, provider: str, conf: Any) -> None:
    conf({PROVIDER: provider})
    stream.feed(3)
    stream.run(stream.cp, totals, "complete")
    uncommit(stream.cp)
    new = stream.folder / "new"
    api.upgrade(str(stream.cp), str(new), carrying=GO)
    stream.feed(2)
    stream.run(new, totals, "complete")
    assert stream.found() == stream.expected(totals)


@pytest.mark.parametrize(
    "settings",
    [{PROVIDER: HDFS}, {PROVIDER: ROCKSDB}, {PROVIDER: ROCKSDB, CHANGELOG: "true"}],
    ids=["hdfs", "rocksdb", "rocksdb-changelog"],
)
def test_a_dropped_batch_moves_the_state_to_later_numbers(
    stream: Stream, conf: Any, settings: dict[str, str]
) -> None:
    conf(settings)
    stream.feed(3)
    stream.run(stream.cp, totals, "complete")
    uncommit(stream.cp)
    new = stream.folder / "new"
    api.upgrade(str(stream.cp), str(new), drop_in_flight=True, carrying=GO)
    assert api.inspect(str(new)).in_flight_batch is None
    stream.feed(2)
    stream.run(new, totals, "complete")
    assert stream.found() == stream.expected(totals)


def test_without_state_only_what_was_not_read_is_read(stream: Stream) -> None:
    stream.feed(3)
    stream.run(stream.cp, totals, "complete")
    new, out = stream.folder / "new", stream.folder / "out2"
    api.upgrade(str(stream.cp), str(new), without_state=True, carrying=GO)
    stream.feed(2)
    stream.run(new, lambda frame: frame.groupBy("customer").count(), "complete", out)
    found = rows(stream.spark.read.format("delta").load(str(out)))
    unread = [str(stream.input / f"{number:03}.json") for number in (3, 4)]
    frame = stream.spark.read.schema(SCHEMA).json(unread)
    assert found == rows(frame.groupBy("customer").count())


@pytest.mark.parametrize("provider", [HDFS, ROCKSDB], ids=["hdfs", "rocksdb"])
def test_rewind_takes_the_state_back(stream: Stream, provider: str, conf: Any) -> None:
    conf({PROVIDER: provider})
    stream.feed(4)
    stream.run(stream.cp, totals, "complete")
    api.rewind(str(stream.cp), to_batch=1, carrying=GO)
    stream.feed(1)
    stream.run(stream.cp, totals, "complete")
    assert stream.found() == stream.expected(totals)


def test_rewind_takes_the_file_sinks_log_back(stream: Stream) -> None:
    stream.feed(4)
    stream.run(stream.cp, kind="parquet")
    api.rewind(str(stream.cp), to_batch=1, sink=str(stream.out), carrying=GO)
    stream.feed(1)
    stream.run(stream.cp, kind="parquet")
    assert stream.found("parquet") == stream.expected()


def test_an_undone_rewind_goes_on_as_if_nothing_had_been(stream: Stream) -> None:
    stream.feed(3)
    stream.run(stream.cp)
    api.rewind(str(stream.cp), to_batch=0, carrying=GO)
    api.undo(str(stream.cp), carrying=GO)
    stream.feed(1)
    stream.run(stream.cp)
    assert stream.found() == stream.expected()


def test_spark_refuses_a_change_that_is_half_done(stream: Stream) -> None:
    from pyspark.errors import StreamingQueryException

    stream.feed(2)
    stream.run(stream.cp)
    (stream.cp / "offsets" / "2").write_bytes(b"floodmark: an unfinished `rewind` holds this")
    with pytest.raises(StreamingQueryException, match="floodmark: an unfinished"):
        stream.run(stream.cp)


@pytest.mark.parametrize("first_snapshot", [True, False], ids=["first-snapshot", "later-version"])
def test_a_delta_source_goes_on_in_the_middle_of_a_version(
    stream: Stream, first_snapshot: bool
) -> None:
    """A version of many files, read two at a time, and left in its middle."""
    table = stream.folder / "table"
    if not first_snapshot:
        stream.spark.range(1000, 1003).write.format("delta").save(str(table))
    numbers = stream.spark.range(0, 20, 1, 2)
    many = numbers.write.format("delta").option("maxRecordsPerFile", 5).mode("append")

    def run(checkpoint: Path, limit: int) -> None:
        reader = stream.spark.readStream.format("delta").option("maxFilesPerTrigger", limit)
        stream.run(checkpoint, source=reader.load(str(table)))

    if not first_snapshot:
        run(stream.cp, 2)
    many.save(str(table))
    run(stream.cp, 2)
    # Its last batch is taken back, and out of the sink, as if it had been stopped there.
    last = api.inspect(str(stream.cp)).committed_batch
    assert last is not None
    api.rewind(str(stream.cp), to_batch=last - 1, keep_identity=True, carrying=GO)
    sink = DeltaSink(stream.out)
    query_id = api.inspect(str(stream.cp)).query_id
    assert query_id is not None
    sink.take_back(query_id, last - 1)
    # The session remembers the table as it was.
    stream.spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()  # type: ignore[union-attr]
    place = api.offsets(str(stream.cp)).sources[0].offset
    assert place["index"] >= 0
    assert place["isStartingVersion"] is first_snapshot
    taken = sink.rows(("id",))
    assert len(taken) == (10 if first_snapshot else 13)
    new = stream.folder / "new"
    api.upgrade(str(stream.cp), str(new), carrying=GO)
    stream.spark.range(100, 110).write.format("delta").mode("append").save(str(table))
    run(new, 3)
    everything = stream.spark.read.format("delta").load(str(table)).collect()
    assert sink.rows(("id",)) == Counter((row.id,) for row in everything)


def test_a_copy_goes_on_elsewhere(stream: Stream, conf: Any) -> None:
    conf({PROVIDER: ROCKSDB})
    stream.feed(2)
    stream.run(stream.cp, totals, "complete")
    api.copy(str(stream.cp), str(stream.folder / "moved"), carrying=GO)
    stream.feed(1)
    stream.run(stream.folder / "moved", totals, "complete")
    assert stream.found() == stream.expected(totals)


def test_a_stream_that_was_led_to_its_moved_input_starts(stream: Stream) -> None:
    """The notes of the last start name the folder that `--rehome` has changed."""

    def start(checkpoint: Path) -> None:
        writer = stream.read().writeStream.format("delta").option("path", str(stream.out))
        query = floodmark.start(writer.trigger(availableNow=True), checkpoint=str(checkpoint))
        assert query.awaitTermination(300)

    stream.feed(2)
    start(stream.cp)
    moved, old = stream.folder / "moved-in", stream.input
    old.rename(moved)
    stream.input = moved
    new = stream.folder / "new"
    # Its lease ends a moment after the query does.
    waiting = Carrying(execute=True, wait_seconds=60)
    api.copy(str(stream.cp), str(new), rehome=[f"{old}={moved}"], carrying=waiting)
    stream.feed(1)
    start(new)
    assert stream.found() == stream.expected()


def test_the_old_checkpoint_is_no_way_back_once_the_new_one_has_run(stream: Stream) -> None:
    """Delta skips its batches without a word; floodmark refuses, and has another way."""
    stream.feed(2)
    stream.run(stream.cp)
    before = stream.spark.sql(f"DESCRIBE HISTORY delta.`{stream.out}`").first()
    assert before is not None
    back, new = stream.folder / "back", stream.folder / "new"
    api.upgrade(str(stream.cp), str(new), carrying=GO)
    stream.feed(2)
    stream.run(new)
    stream.feed(1)
    whole = stream.spark.readStream.schema(SCHEMA).json(str(stream.input))

    with pytest.raises(Refused, match=r"has batch 3, but the newest planned is 1") as refused:
        floodmark.start(
            whole.writeStream.format("delta").option("path", str(stream.out)),
            checkpoint=str(stream.cp),
        )
    assert "sink-ahead-of-commits" in str(refused.value.do)
    code = app(stream.folder, f'first.writeStream.format("delta").option("path", "{stream.out}")')
    Path(code).write_text(Path(code).read_text().replace('.writeStream.format("noop")', ""))
    judged = floodmark.check(str(stream.cp), code)
    assert any("The sink has batch 3" in one.what for one in judged.reasons), judged
    assert "NOT ASKED" in api.upgrade(str(stream.cp), str(back)).plan.consequences[-1].words
    told = api.upgrade(str(stream.cp), str(back), app=code).plan
    assert (told.consequences[0].skips, told.unaccepted) == ((2, 3), ("skips",))

    stream.spark.sql(f"RESTORE TABLE delta.`{stream.out}` TO VERSION AS OF {before['version']}")
    stream.run(stream.cp, source=whole)
    assert len(stream.found()) < len(stream.expected()), "Delta takes what it has skipped before"
    lost = {str(path) for path in (stream.cp / "offsets").glob("[2-9]*")}
    for path in (*lost, *(one.replace("offsets", "commits") for one in lost)):
        Path(path).unlink()
    for path in (stream.cp / "sources/0").glob("[2-9]*"):
        path.unlink()
    api.upgrade(str(stream.cp), str(back), new_identity=True, carrying=GO)
    stream.run(back, source=whole)
    assert stream.found() == stream.expected()


def test_a_restored_checkpoint_goes_on(stream: Stream) -> None:
    stream.feed(2)
    stream.run(stream.cp, totals, "complete")
    api.backup(str(stream.cp), str(stream.folder / "repo"), carrying=GO)
    api.restore(str(stream.folder / "repo"), str(stream.folder / "again"), carrying=GO)
    stream.feed(2)
    stream.run(stream.folder / "again", totals, "complete")
    assert stream.found() == stream.expected(totals)


APP = """
from floodmark import pipeline

@pipeline(checkpoint="unused")
def orders(spark, start):
    first = spark.readStream.schema("customer string, amount long").json({folder!r})
    return {frame}.writeStream.format("noop")
"""


def app(folder: Path, frame: str) -> str:
    path = folder / "app.py"
    path.write_text(APP.format(folder=str(folder / "in"), frame=frame))
    return str(path)


def test_the_new_codes_sources_are_judged(stream: Stream) -> None:
    stream.feed(1)
    stream.run(stream.cp)
    fitting = app(stream.folder, "first")
    change = api.upgrade(str(stream.cp), str(stream.folder / "new"), app=fitting)
    assert any("as the checkpoint does" in note for note in change.plan.notes)
    assert any("Only the sources" in note for note in change.plan.notes)
    two = app(stream.folder, 'first.unionByName(spark.readStream.format("rate").load(), True)')
    with pytest.raises(WouldLose, match=r"Source 1 \(rate\) is new.*FM301"):
        api.upgrade(str(stream.cp), str(stream.folder / "new"), app=two)
    other = app(stream.folder, 'spark.readStream.format("rate").load()')
    with pytest.raises(WouldLose, match="Source 0 is rate in the new code"):
        api.upgrade(str(stream.cp), str(stream.folder / "new"), app=other)


def test_exchanged_folders_of_the_new_code_are_refused(stream: Stream) -> None:
    stream.feed(1)
    second = stream.folder / "second"
    second.mkdir()
    (second / "1.json").write_text('{"customer": "c9", "amount": 1}\n')
    frame = f'first.unionByName(spark.readStream.schema(first.schema).json("{second}"))'
    before = app(stream.folder, frame)
    stream.run(stream.cp, lambda one: _beside(one, second))
    new = str(stream.folder / "new")
    agreed = api.upgrade(str(stream.cp), new, app=before).plan.notes
    assert sum("as the checkpoint does" in note for note in agreed) == 2
    Path(before).write_text(
        Path(before)
        .read_text()
        .replace(str(stream.folder / "in"), "FIRST")
        .replace(str(second), str(stream.folder / "in"))
        .replace("FIRST", str(second))
    )
    with pytest.raises(WouldLose, match=r"that is source 1.*FM303 sources-reordered") as refused:
        api.upgrade(str(stream.cp), new, app=before)
    assert "Kafka" not in str(refused.value.why)
    assert f"floodmark migrate {stream.cp} {new} --app {before}" in str(refused.value.do)


def _beside(frame: Any, folder: Path) -> Any:
    return frame.unionByName(frame.sparkSession.readStream.schema(frame.schema).json(str(folder)))


def test_the_new_codes_parameters_are_given(stream: Stream) -> None:
    stream.feed(1)
    stream.run(stream.cp)
    path = Path(app(stream.folder, "first"))
    path.write_text(path.read_text().replace("(spark, start)", "(spark, start, region: str)"))
    with pytest.raises(WrongUse, match="region"):
        api.upgrade(str(stream.cp), str(stream.folder / "new"), app=str(path))
    change = api.upgrade(
        str(stream.cp), str(stream.folder / "new"), app=str(path), settings={"region": "north"}
    )
    assert any("as the checkpoint does" in note for note in change.plan.notes)
    with pytest.raises(WrongUse, match="no application with this parameter"):
        api.upgrade(str(stream.cp), str(stream.folder / "new"), settings={"region": "north"})
