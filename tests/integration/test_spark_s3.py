"""Checkpoints that Spark itself writes to S3: run, read, moved, rewritten and run on.

Spark speaks s3a:// with the jars that floodmark resolves, floodmark's own verbs s3://: both are one
place. A batch query over all input says what the stream must have.
"""

from __future__ import annotations

import contextlib
import json
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from s3_stream import COUNTED, TOTAL, Commands, feed, oracle, written

from floodmark import api
from floodmark.changes.apply import Carrying
from floodmark.checkpoint.relative_path import RelativePath
from floodmark.engine.spark.hadoop import checkpoint_files
from floodmark.engine.start.launch import start
from floodmark.errors import NoAnswer, Refused

if TYPE_CHECKING:
    from services.s3 import S3Server

pytestmark = [pytest.mark.spark, pytest.mark.services]


@pytest.fixture
def session(spark: Any, s3: S3Server) -> Any:
    """A session of its own: where S3 is and who asks is not the business of the others."""
    found = spark.newSession()
    for key, value in s3.spark_conf.items():
        found.conf.set(key.removeprefix("spark.hadoop."), value)
    return found


def totals(session: Any, orders: Path, sink: Path) -> Any:
    rows = session.readStream.schema("customer STRING, paid LONG").json(str(orders))

    def write(batch: Any, _number: int) -> None:
        batch.coalesce(1).write.mode("overwrite").json(str(sink))

    summed = rows.groupBy("customer").sum("paid").toDF("customer", "total")
    writer = summed.writeStream.outputMode("complete").foreachBatch(write)
    return writer.trigger(availableNow=True)


def test_spark_writes_to_s3_and_floodmark_reads_rewrites_and_runs_on(
    session: Any, s3: S3Server, tmp_path: Path
) -> None:
    orders, sink, place = tmp_path / "orders", tmp_path / "sink", s3.place("spark")
    old, new = f"{place}/ck", f"{place}/new"
    feed(orders, *range(1, 7))
    running = start(totals(session, orders, sink), old.replace("s3://", "s3a://"))
    try:
        # The lease that Spark's Hadoop wrote at s3a:// is seen at s3://.
        ends = time.monotonic() + 300
        asked = Carrying(execute=True, storage=s3.storage_options)
        with pytest.raises(Refused):
            _upgraded_once_planned(old, new, asked, ends)
        assert running.awaitTermination(300)
    finally:
        running.stop()
    assert running.exception() is None

    for name in (old, old.replace("s3://", "s3a://")):
        found = api.inspect(name, s3.storage_options)
        assert (found.query_id, found.committed_batch) == (str(running.id), 0)
    state = api.state(old, storage=s3.storage_options).to_arrow().to_pylist()
    assert {row["key"]["customer"] for row in state} == {"c0", "c1", "c2"}

    patient = Carrying(execute=True, storage=s3.storage_options, wait_seconds=60)
    changed = api.repartition(old, new, partitions=3, carrying=patient)
    assert changed.executed
    feed(orders, 7, 8)
    session.conf.set("spark.sql.shuffle.partitions", "3")
    again = start(totals(session, orders, sink), new.replace("s3://", "s3a://"))
    assert again.awaitTermination(300)
    assert again.exception() is None
    assert written(sink) == oracle(orders)
    assert api.inspect(new, s3.storage_options).state[0].partitions == 3


def _upgraded_once_planned(old: str, new: str, asked: Carrying, ends: float) -> None:
    while time.monotonic() < ends:
        with contextlib.suppress(NoAnswer):  # no batch is planned yet
            api.upgrade(old, new, carrying=asked)


def test_of_many_that_create_a_file_on_s3_one_does(session: Any, s3: S3Server) -> None:
    """Hadoop's conditional write: the store decides, nobody looks first and writes later."""
    place = s3.place("created").replace("s3://", "s3a://")
    files = checkpoint_files(session, place)
    path = RelativePath("_floodmark/epochs/1.json")
    with ThreadPoolExecutor(6) as pool:
        made = list(pool.map(lambda number: files.create(path, b"%d" % number), range(6)))
    assert made.count(True) == 1
    assert files.read(path) == b"%d" % made.index(True)
    assert not files.create(path, b"later")


# The verbs as commands, each with a JVM of its own ------------------------------------------------


@pytest.fixture
def commands(s3: S3Server, tmp_path: Path) -> Commands:
    made = Commands(s3, tmp_path)
    feed(made.orders, *range(1, 7))
    return made


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_run_migrate_repartition_rehearse_and_bootstrap_on_s3(commands: Commands) -> None:
    first, second = commands.write("first.py", TOTAL), commands.write("second.py", COUNTED)
    old, storage = commands.checkpoint("a"), commands.storage
    said = commands.stream(first, "a")
    assert "slow-file-manager" in said, "Spark's default on S3 is named, with what is quicker"

    code = [*commands.settings("a"), *commands.conf, *storage]
    answer, _ = commands.run("check", old, first, "--rehearse", "--json", *code)
    judged = json.loads(answer)
    assert judged["decided_by"] == "rehearsal"
    assert judged["verdict"] in ("same", "compatible")

    code = [*commands.settings("b"), *commands.conf, *storage]
    wait = ["--execute", "--wait", "60"]
    commands.run("migrate", old, commands.checkpoint("b"), "--app", second, *wait, *code)
    feed(commands.orders, 7, 8)
    commands.stream(second, "b")

    spread = commands.checkpoint("c")
    told = ["--partitions", "5", *wait, *storage]
    commands.run("repartition", commands.checkpoint("b"), spread, *told)
    feed(commands.orders, 9, 10)
    commands.stream(second, "c", partitions=5)
    assert api.inspect(spread, commands.s3.storage_options).state[0].partitions == 5

    _bootstrap(commands, first)


def _bootstrap(commands: Commands, app: str) -> None:
    """A state from a table; the stream then reads a folder of its own, in which one file lies."""
    before = oracle(commands.orders)
    table = commands.folder / "state.json"
    rows = [{"customer": name, "sum": total} for name, total in before.items()]
    table.write_text("".join(json.dumps(row) + "\n" for row in rows))
    commands.orders = commands.folder / "later"
    commands.orders.mkdir()
    # A checkpoint keeps the number of partitions that it is made with.
    few = ["--conf", "spark.sql.shuffle.partitions=2"]
    code = [*commands.settings("d"), *commands.conf, *few, *commands.storage]
    made = commands.checkpoint("d")
    commands.run("bootstrap", made, "--app", app, "--state", str(table), "--execute", *code)
    feed(commands.orders, 11)
    status, said = commands.tried(app, "d")
    assert status == 0, said
    assert written(commands.sink) == {**before, "c2": before["c2"] + 11}
