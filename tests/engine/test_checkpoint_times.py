"""The time of the checkpoint's writes: told with each batch, warned of where it is most of it."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engine.test_progress import REPORT
from floodmark.engine.code.query import read_query
from floodmark.engine.run.listeners.checkpoint_times import CheckpointTimes, dominating
from floodmark.engine.run.live_table import PlainView, batch_words
from floodmark.engine.run.progress import BatchProgress, parse_progress
from floodmark.engine.run.triggers import milliseconds
from floodmark.engine.start.async_progress import refusal, with_async_progress
from floodmark.engine.start.launch import CodeOrigin, prepare
from floodmark.errors import WrongUse


def _batch(**durations: int) -> BatchProgress:
    operators = [{"numRowsTotal": 4, "commitTimeMs": 400, "numShufflePartitions": 4}]
    report = {**REPORT, "durationMs": durations, "stateOperators": operators}
    found = parse_progress("sales", json.dumps(report))
    assert found is not None
    return found


def test_a_batch_tells_what_the_checkpoint_took() -> None:
    batch = _batch(addBatch=800, walCommit=300, commitOffsets=200, triggerExecution=1500)
    assert batch.checkpoint_ms == 300 + 200 + 100
    assert "checkpoint 0.6 s" in batch_words(batch)
    quick = _batch(addBatch=9000, walCommit=30, commitOffsets=20, triggerExecution=9500)
    assert not any("checkpoint" in words for words in batch_words(quick))


@pytest.mark.parametrize(
    ("recent", "warned"),
    [
        ([(600, 1000)] * 5, True),
        ([(600, 1000)] * 4, False),  # too few to tell
        ([(400, 1000)] * 10, False),
        ([(30, 40)] * 10, False),  # nobody waits for that
        ([(0, 0)] * 10, False),
    ],
)
def test_when_the_writes_dominate(recent: list[tuple[int, int]], warned: bool) -> None:
    words = dominating(recent)
    assert (words is not None) == warned
    if words:
        assert words.endswith("take 60% of a batch: 0.6 of 1.0 s in the last 5 batches.")


@pytest.mark.spark
def test_a_run_is_warned_once_and_told_what_to_do(
    spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    writer = spark.readStream.format("rate").load().writeStream.format("noop")
    prepared = prepare(writer, str(tmp_path / "ck"), CodeOrigin("sales"), frozenset())
    times = CheckpointTimes()
    times.begins("sales", prepared.starting, PlainView(["sales"]), 0)
    batch = _batch(addBatch=300, walCommit=500, commitOffsets=500, triggerExecution=1500)
    for number in range(20):
        times.batch(replace(batch, batch=number))
    told = capsys.readouterr().err
    assert told.count("the writes of the checkpoint take") == 1
    assert "--trigger 10s" in told
    assert "--async-progress 1s" in told
    assert "slow-file-manager" not in told, "this one lies on a disk"


def test_lengths_of_time_as_numbers() -> None:
    assert [milliseconds(text, "--x") for text in ("500ms", "1s", "2min")] == [500, 1000, 120_000]
    with pytest.raises(WrongUse, match="--x soon: not a duration"):
        milliseconds("soon", "--x")


@pytest.mark.spark
def test_which_queries_can_have_async_progress(spark: Any) -> None:
    rows = spark.readStream.format("rate").load()
    plain = rows.writeStream.format("noop")
    assert refusal(read_query(plain)) is None
    refused = {
        "keeps state": rows.groupBy("value").count().writeStream.format("noop"),
        "sink is foreachBatch": rows.writeStream.foreachBatch(lambda *_: None),
        "not a processing time": plain.trigger(availableNow=True),
    }
    for words, writer in refused.items():
        writer = writer.outputMode("update") if words == "keeps state" else writer
        with pytest.raises(WrongUse, match=words):
            with_async_progress(writer, 1000)


@pytest.mark.spark
def test_async_progress_leaves_fewer_entries_than_batches(spark: Any, tmp_path: Path) -> None:
    rows = spark.readStream.format("rate").option("rowsPerSecond", 1000).load()
    writer = with_async_progress(rows.writeStream.format("noop"), 60_000)
    query = writer.option("checkpointLocation", str(tmp_path / "ck")).start()
    try:
        deadline = time.monotonic() + 300
        while (query.lastProgress or {"batchId": 0})["batchId"] < 4:
            assert time.monotonic() < deadline
            assert query.exception() is None
            time.sleep(0.1)
    finally:
        query.stop()
    kept = [path.name for path in (tmp_path / "ck" / "offsets").iterdir() if path.name.isdecimal()]
    assert len(kept) < 4
