"""A run's metrics equal its progress lines, and its consumer group what it has committed."""

from __future__ import annotations

import json
import re
import socket
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest

import floodmark
from floodmark.errors import Refused, WrongUse
from ports import free_port

if TYPE_CHECKING:
    from services.kafka import KafkaServer

pytestmark = [pytest.mark.spark, pytest.mark.services]

READS = """
    rows = (spark.readStream.format("kafka").option("kafka.bootstrap.servers", "{servers}")
            .option("subscribe", "{topic}").option("startingOffsets", "earliest")
            .option("maxOffsetsPerTrigger", "4").load())
    totals = rows.groupBy("partition").count().writeStream.outputMode("update").format("noop")
"""
PIPELINE = (
    """
from floodmark import pipeline

@pipeline(checkpoint="{folder}/cp", needs=())
def counts(spark, start):
"""
    + READS
    + """
    return totals.trigger(availableNow=True)
"""
)
SCRIPT = (
    """
from pyspark.sql import SparkSession

def main():
    spark = SparkSession.builder.getOrCreate()
"""
    + READS
    + """
    query = totals.option("checkpointLocation", "{folder}/cp").trigger(availableNow=True).start()
    query.awaitTermination()

main()
"""
)


@contextmanager
def scraped(port: int) -> Iterator[list[dict[str, float]]]:
    """Every answer of /metrics while the block runs."""
    answers: list[dict[str, float]] = []
    over = threading.Event()

    def scrape() -> None:
        while not over.wait(0.05):
            try:
                with urllib.request.urlopen(
                    f"http://127.0.0.1:{port}/metrics", timeout=120
                ) as reply:
                    assert reply.headers["Content-Type"].startswith("text/plain; version=0.0.4")
                    answers.append(parsed(reply.read().decode()))
            except (urllib.error.URLError, ConnectionError):
                continue

    thread = threading.Thread(target=scrape)
    thread.start()
    try:
        yield answers
    finally:
        over.set()
        thread.join(300)


def parsed(text: str) -> dict[str, float]:
    rows = (line.rpartition(" ") for line in text.splitlines() if not line.startswith("#"))
    return {re.sub(r'pipeline="[^"]*",?', "", name): float(value) for name, _, value in rows}


def lines(checkpoint: Path) -> list[dict[str, Any]]:
    text = (checkpoint / "_floodmark" / "progress.jsonl").read_text()
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.parametrize("code", [PIPELINE, SCRIPT], ids=["pipeline", "script"])
def test_metrics_equal_progress_lines_and_the_group_what_is_committed(
    code: str, spark: Any, kafka: KafkaServer, fetched: ModuleType, tmp_path: Path
) -> None:
    from services.kafka import consumer_groups

    topic = kafka.create_topic("observed", partitions=2)
    kafka.produce(topic, [b"%d" % n for n in range(10)])
    application = tmp_path / "app.py"
    application.write_text(code.format(folder=tmp_path, servers=kafka.bootstrap, topic=topic))
    port, group = free_port(), f"group-{topic}"
    with scraped(port) as answers:
        report = floodmark.run(
            str(application),
            metrics_port=port,
            commit_to_group=group,
            outline=str(tmp_path / "streams" / "{pipeline}.json"),
        )
    (outline,) = (tmp_path / "streams").iterdir()
    assert outline.name == f"{report.pipelines[0].pipeline}.json"
    assert outline.read_text() == floodmark.outline(str(tmp_path / "cp"))
    assert report.pipelines[0].batches == 3
    written = lines(tmp_path / "cp")
    assert len(written) == 3
    seen = {int(one["floodmark_run_batches_total{}"]) for one in answers if one}
    assert seen & {1, 2, 3}
    for answer in answers:
        if answer.get("floodmark_run_batches_total{}"):
            agrees(answer, written)
    shown = consumer_groups(
        fetched.kafka_tools(), "--bootstrap-server", kafka.bootstrap, "--describe", "--group", group
    )
    rows = [line.split() for line in shown.splitlines() if line.startswith(group)]
    assert {(row[2], row[3], row[5]) for row in rows} == {("0", "5", "0"), ("1", "5", "0")}


def agrees(answer: dict[str, float], written: list[dict[str, Any]]) -> None:
    """One scrape with the lines of as many batches as it counts."""
    done = written[: int(answer["floodmark_run_batches_total{}"])]
    last = done[-1]
    assert answer["floodmark_run_input_rows_total{}"] == sum(one["rows"] for one in done)
    assert answer["floodmark_run_last_batch{}"] == last["batch"]
    assert answer["floodmark_run_last_batch_duration_seconds{}"] == last["duration_ms"] / 1000
    total = sum(one["duration_ms"] for one in done) / 1000
    assert answer["floodmark_run_batch_duration_seconds_sum{}"] == pytest.approx(total)
    assert answer["floodmark_run_batch_duration_seconds_count{}"] == len(done)
    for phase in ("addBatch", "walCommit", "commitOffsets", "latestOffset", "queryPlanning"):
        at = f'{{phase="{phase}"}}'
        spent = sum(one["durations_ms"].get(phase, 0) for one in done) / 1000
        assert answer[f"floodmark_run_phase_duration_seconds_total{at}"] == pytest.approx(spent)
        alone = answer[f"floodmark_run_last_batch_phase_duration_seconds{at}"]
        assert alone == last["durations_ms"][phase] / 1000
    assert answer["floodmark_run_state_rows{}"] == last["state_rows"]
    [source] = last["sources"]
    ends, latest = source["end"], source["latest"]
    behind = sum(
        latest[topic][number] - at for topic, there in ends.items() for number, at in there.items()
    )
    assert answer['floodmark_run_source_lag_records{source="0"}'] == behind
    assert answer["floodmark_run_restarts_total{}"] == 0


def test_a_group_with_members_keeps_the_run_from_starting(
    spark: Any, kafka: KafkaServer, tmp_path: Path
) -> None:
    from confluent_kafka import Consumer

    topic = kafka.create_topic("observed", partitions=2)
    kafka.produce(topic, [b"a"])
    application = tmp_path / "app.py"
    application.write_text(PIPELINE.format(folder=tmp_path, servers=kafka.bootstrap, topic=topic))
    settings = {
        "bootstrap.servers": kafka.bootstrap,
        "group.id": f"billing-{topic}",
        "auto.offset.reset": "earliest",
    }
    consumer = Consumer(settings)
    try:
        consumer.subscribe([topic])
        assert consumer.poll(30) is not None
        with pytest.raises(Refused, match="has 1 member"):
            floodmark.run(str(application), commit_to_group=f"billing-{topic}")
    finally:
        consumer.close()
    assert not (tmp_path / "cp" / "offsets").exists()


def test_wrong_use(tmp_path: Path) -> None:
    application = tmp_path / "app.py"
    application.write_text(PIPELINE)
    with pytest.raises(WrongUse, match="not a valid name of a group"):
        floodmark.run(str(application), commit_to_group="")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(WrongUse, match=f"--metrics-port {port}: cannot listen"):
            floodmark.run(str(application), metrics_port=port)
