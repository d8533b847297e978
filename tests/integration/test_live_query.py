"""A change under a plain query that was running all along: asked about before, undone after."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from floodmark import api
from floodmark.changes.apply import Carrying
from floodmark.changes.in_use import Clock
from floodmark.errors import WouldLose
from floodmark.storage.machine.process import kill_family
from patience import wait_until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.doubts]

ACCEPT = ("maybe-running",)
# The moment at which nothing is written: longer than it is watched for, in a real night.
GO = Carrying(execute=True, clock=Clock(pause=lambda seconds: None), accept=ACCEPT)
SCHEMA = "customer string, amount long"


class Live:
    """Files of orders in, totals out, by a query that nobody but Spark knows of."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark = spark
        self.input = folder / "in"
        self.input.mkdir()
        self.cp = folder / "cp"
        self.totals: dict[str, int] = {}
        self.go_on = threading.Event()
        self.go_on.set()
        self.fed = 0

    def feed(self) -> None:
        rows = [{"customer": f"c{i % 2}", "amount": 10 * self.fed + i} for i in range(4)]
        (self.input / f"{self.fed:03}.json").write_text("\n".join(map(json.dumps, rows)))
        self.fed += 1

    def start(self, **trigger: Any) -> Any:
        def write(batch: Any, batch_id: int) -> None:
            found = {row["customer"]: row["total"] for row in batch.collect()}
            assert self.go_on.wait(300)
            self.totals.update(found)

        reader = self.spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
        rows = reader.json(str(self.input)).groupBy("customer").agg({"amount": "sum"})
        writer = rows.withColumnRenamed("sum(amount)", "total").writeStream.outputMode("update")
        writer = writer.option("checkpointLocation", str(self.cp)).trigger(**trigger)
        return writer.foreachBatch(write).start()

    def log(self, name: str) -> list[int]:
        found = [] if not (self.cp / name).exists() else list((self.cp / name).iterdir())
        return sorted(int(path.name) for path in found if path.name.isdecimal())

    def expected(self) -> dict[str, int]:
        rows = self.spark.read.schema(SCHEMA).json(str(self.input))
        found = rows.groupBy("customer").agg({"amount": "sum"}).collect()
        return {row["customer"]: row["sum(amount)"] for row in found}


@pytest.mark.parametrize("in_flight", [False, True], ids=["idle", "in a long batch"])
def test_a_rewind_under_a_live_query_is_asked_about_and_undone(
    spark: SparkSession, tmp_path: Path, in_flight: bool
) -> None:
    live = Live(spark, tmp_path)
    query = live.start(processingTime="200 milliseconds")
    try:
        for number in range(2):
            live.feed()
            wait_until(lambda number=number: number in live.log("commits"))
        if in_flight:
            live.go_on.clear()
        live.feed()
        wait_until(lambda: 2 in live.log("offsets" if in_flight else "commits"))

        plan = api.rewind(str(live.cp), to_batch=0).plan
        assert plan.unaccepted == ACCEPT
        with pytest.raises(WouldLose, match="maybe-running has to be accepted"):
            api.rewind(str(live.cp), to_batch=0, carrying=Carrying(execute=True, clock=GO.clock))
        assert live.log("offsets") == [0, 1, 2]

        api.rewind(str(live.cp), to_batch=0, accept=ACCEPT, carrying=GO)
        assert live.log("offsets") == [0]
        live.go_on.set()
        live.feed()
        wait_until(lambda: 3 in live.log("commits"))
    finally:
        live.go_on.set()
        query.stop()
    assert live.log("offsets") == [0, 3], "the live query went on from its own memory"

    shown = api.undo(str(live.cp)).plan
    assert "A query that was running has added to the log since" in shown.notes[0]
    done = api.undo(str(live.cp), carrying=GO)
    assert done.executed
    assert ("batches 2 to 3" if in_flight else "batch 3") in done.words
    assert live.log("offsets") == live.log("commits") == [0, 1, 2, 3]

    live.feed()
    again = live.start(availableNow=True)
    assert again.awaitTermination(300)
    assert live.log("commits") == [0, 1, 2, 3, 4]
    assert live.totals == live.expected()


ALIVE = """
import sys, time
from pathlib import Path
from pyspark.sql import SparkSession

builder = SparkSession.builder.master("local[1]").config("spark.driver.host", "127.0.0.1")
spark = builder.getOrCreate()

def slow(batch, number):
    limit = time.monotonic() + 300
    while number and not Path(sys.argv[2]).exists() and time.monotonic() < limit:
        time.sleep(0.1)

rows = spark.readStream.format("rate").option("rowsPerSecond", 10).load()
writer = rows.writeStream.option("checkpointLocation", "ck").foreachBatch(slow)
writer.trigger(processingTime="200 milliseconds").start().awaitTermination(300)
"""


def test_the_spark_ui_of_this_machine_is_asked(tmp_path: Path) -> None:
    """A script that only Spark knows of, whose second batch takes long, found by its query id."""
    (tmp_path / "alive.py").write_text(ALIVE)
    command = [sys.executable, "alive.py", "--", str(tmp_path / "go-on")]
    cp = tmp_path / "ck"
    with (tmp_path / "log").open("wb") as log:
        child = subprocess.Popen(command, cwd=tmp_path, stdout=log, stderr=log)
    try:
        wait_until(lambda: (cp / "offsets/1").exists())
        words = api.rewind(str(cp), to_batch=0).plan.consequences[-1].words
        assert "Batch 1 is in flight" in words
        query = json.loads((cp / "metadata").read_text())["id"]
        assert f"A Spark UI shows query {query} running: http://127.0.0.1:40" in words
    finally:
        kill_family(child.pid)
        child.wait()
