"""A checkpoint on a real HDFS: Spark writes it over RPC, floodmark reads and moves it over HTTP."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import floodmark
from floodmark.changes.apply import Carrying
from floodmark.engine.start.launch import start
from floodmark.errors import Refused

if TYPE_CHECKING:
    from services.hdfs import HdfsServer

pytestmark = [pytest.mark.spark, pytest.mark.services]


def feed(folder: Path, number: int) -> None:
    folder.mkdir(exist_ok=True)
    (folder / f"{number}.json").write_text(f'{{"customer": "c{number % 2}", "paid": {number}}}\n')


def totals(spark: Any, orders: Path, sink: Path) -> Any:
    rows = spark.readStream.schema("customer STRING, paid LONG").json(str(orders))

    def write(batch: Any, _number: int) -> None:
        batch.coalesce(1).write.mode("overwrite").json(str(sink))

    summed = rows.groupBy("customer").sum("paid").toDF("customer", "total")
    return summed.writeStream.outputMode("complete").foreachBatch(write)


def read(spark: Any, sink: Path) -> dict[str, int]:
    return {row.customer: row.total for row in spark.read.json(str(sink)).collect()}


def test_a_stream_on_hdfs_is_run_read_moved_and_run_on(
    spark: Any, hdfs: HdfsServer, tmp_path: Path
) -> None:
    orders, sink, place = tmp_path / "orders", tmp_path / "sink", hdfs.place("stream")
    old, new = f"{place}/ck", f"{place}/moved"
    for number in (1, 2, 3):
        feed(orders, number)
    running = start(totals(spark, orders, sink), hdfs.rpc(old))
    try:
        running.processAllAvailable()
        # The lease and the notes of the start lie on HDFS as well, and hold there.
        with pytest.raises(Refused, match="is in use"):
            start(totals(spark, orders, sink), hdfs.rpc(old))
        with pytest.raises(Refused):
            floodmark.upgrade(hdfs.web(old), hdfs.web(new), carrying=Carrying(execute=True))
    finally:
        running.stop()

    found = floodmark.inspect(hdfs.web(old))
    assert found.query_id == str(running.id)
    assert (found.latest_batch, found.committed_batch) == (0, 0)
    remembered = floodmark.open(hdfs.web(old)).state().to_arrow().to_pylist()
    assert {row["key"]["customer"] for row in remembered} == {"c0", "c1"}

    # The lease ends with the next heartbeat.
    patient = Carrying(execute=True, wait_seconds=120)
    change = floodmark.upgrade(hdfs.web(old), hdfs.web(new), carrying=patient)
    assert change.executed
    feed(orders, 4)
    moved = start(totals(spark, orders, sink).trigger(availableNow=True), hdfs.rpc(new))
    assert moved.awaitTermination(300)
    assert moved.exception() is None
    assert read(spark, sink) == {"c0": 6, "c1": 4}
    assert floodmark.inspect(hdfs.web(new)).committed_batch == 1
