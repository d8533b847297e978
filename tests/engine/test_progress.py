"""Spark's reports as our own, and the lines that are kept of them."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from floodmark.engine.run.live_table import batch_words
from floodmark.engine.run.progress import (
    BatchProgress,
    ProgressFile,
    ProgressReader,
    parse_progress,
)

REPORT: dict[str, Any] = {
    "id": "q",
    "runId": "r",
    "timestamp": "2026-11-15T08:51:17.945Z",
    "batchId": 7,
    "numInputRows": 300,
    "durationMs": {"addBatch": 800, "triggerExecution": 1500},
    "eventTime": {"watermark": "2026-11-15T08:40:00.000Z"},
    "stateOperators": [
        {"numRowsTotal": 4, "memoryUsedBytes": 100},
        {"numRowsTotal": 5, "memoryUsedBytes": 1},
    ],
    "sources": [
        {
            "description": "KafkaV2[Subscribe[orders]]",
            "startOffset": {"orders": {"0": 400}},
            "endOffset": '{"orders":{"0":700}}',
            "numInputRows": 300,
        }
    ],
}


def test_a_report_of_a_batch() -> None:
    batch = parse_progress("sales", json.dumps(REPORT))
    assert batch is not None
    assert (batch.batch, batch.rows, batch.rows_per_second) == (7, 300, 200.0)
    assert (batch.state_rows, batch.state_bytes) == (9, 101)
    assert batch.sources[0].end == {"orders": {"0": 700}}
    words = "   ".join(batch_words(batch))
    assert words == (
        "batch 7   300 rows in 1.5 s   200 rows/s   orders 0:700   state 9 rows   "
        "watermark 2026-11-15 08:40:00"
    )


def test_a_report_of_waiting_is_no_batch() -> None:
    waiting = {**REPORT, "durationMs": {"latestOffset": 3, "triggerExecution": 4}}
    assert parse_progress("sales", json.dumps(waiting)) is None


class FakeReport:
    def __init__(self, batch: int, durations: dict[str, int]) -> None:
        self._value = {**REPORT, "batchId": batch, "durationMs": durations}

    def batchId(self) -> int:  # noqa: N802
        return int(self._value["batchId"])

    def json(self) -> str:
        return json.dumps(self._value)


class FakeQuery:
    def __init__(self) -> None:
        self.reports: list[FakeReport] = []
        self._jsq = self

    def recentProgress(self) -> list[FakeReport]:  # noqa: N802
        return self.reports


def test_each_batch_is_read_once_and_waiting_is_passed_over() -> None:
    query = FakeQuery()
    reader = ProgressReader("sales", query)
    ran, waited = {"addBatch": 1, "triggerExecution": 2}, {"triggerExecution": 1}
    query.reports = [FakeReport(0, ran), FakeReport(1, ran), FakeReport(2, waited)]
    assert [batch.batch for batch in reader.new()] == [0, 1]
    assert reader.new() == []
    query.reports += [FakeReport(2, ran), FakeReport(3, waited)]
    assert [batch.batch for batch in reader.new()] == [2]


def sample() -> BatchProgress:
    batch = parse_progress("sales", json.dumps(REPORT))
    assert batch is not None
    return batch


def test_one_line_a_batch(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "progress.jsonl"
    lines = ProgressFile(path)
    lines.add(sample())
    lines.add(replace(sample(), batch=8))
    lines.close()
    found = [json.loads(line) for line in path.read_text().splitlines()]
    assert [entry["batch"] for entry in found] == [7, 8]
    assert found[0]["sources"][0]["end"] == {"orders": {"0": 700}}


def test_half_a_line_of_a_killed_run_does_not_spoil_the_next(tmp_path: Path) -> None:
    path = tmp_path / "progress.jsonl"
    path.write_text('{"batch": 6, "ro')
    lines = ProgressFile(path)
    lines.add(sample())
    lines.close()
    assert json.loads(path.read_text().splitlines()[1])["batch"] == 7


def test_what_cannot_be_kept_is_told_once_and_stops_nothing(tmp_path: Path) -> None:
    said: list[str] = []
    full = ProgressFile(Path("/dev/full"), said.append)
    for _ in range(3):
        full.add(sample())
    full.close()
    assert len(said) == 1
    assert "No space left on device" in said[0]
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    unread = ProgressFile(pipe, said.append)  # would wait for a reader for ever
    unread.add(sample())
    assert len(said) == 2
    below = tmp_path / "file"
    below.write_text("no folder")
    ProgressFile(below / "progress.jsonl", said.append).add(sample())
    assert len(said) == 3


def test_it_goes_on_where_the_disk_has_room_again(tmp_path: Path) -> None:
    path = tmp_path / "away" / "progress.jsonl"
    (tmp_path / "away").write_text("in the way")
    lines = ProgressFile(path)
    lines.add(sample())
    (tmp_path / "away").unlink()
    lines.add(replace(sample(), batch=8))
    lines.close()
    assert json.loads(path.read_text())["batch"] == 8


def test_a_kafka_record_that_is_read_twice_counts_once() -> None:
    twice = json.loads(json.dumps(REPORT))
    twice["numInputRows"] = twice["sources"][0]["numInputRows"] = 600
    batch = parse_progress("sales", json.dumps(twice))
    assert batch is not None
    assert batch.rows == 300
