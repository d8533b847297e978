"""What operators do to a run: signals to one process or to all, a JVM that dies, broken side files.

Each test is a real `floodmark run` with a JVM of its own.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from drivers import MAIN, PATIENCE_SECONDS, Driver, begun, floodmark, gone_within, logged
from streams import put_orders

from floodmark.storage.machine.process import family
from ports import free_port

pytestmark = pytest.mark.spark

APP = """
import pathlib
import time
from floodmark import pipeline

SCHEMA = "customerId STRING, amountPaid DECIMAL(12, 2)"

@pipeline(checkpoint="ck")
def sales(spark, start, *, slow: float = 0.0, fails: bool = False, fills: bool = False):
    reader = spark.readStream.schema(SCHEMA).option("header", True)
    orders = reader.option("maxFilesPerTrigger", 1).csv("orders")

    def write(rows, batch):
        with open("begun", "a") as file:
            file.write(f"{batch} ")
        if batch == 1 and not pathlib.Path("slept").exists():
            pathlib.Path("slept").touch()
            time.sleep(slow)
            if fails:
                raise ValueError("no such region")
            if fills:
                rows.selectExpr("length(repeat(customerId, 900000000))").collect()
        with open("sink", "a") as file:
            file.write("".join(f"{batch} {row.customerId}\\n" for row in rows.collect()))
        print("batch", batch, "is written", flush=True)

    return orders.writeStream.foreachBatch(write)
"""
# A JVM that starts quickly: it lives for seconds.
QUICK = {
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
RUN = ("run", "app.py", "--master", "local[1]")
RUN += tuple(word for key, value in QUICK.items() for word in ("--conf", f"{key}={value}"))
NOW = (*RUN, "--available-now")
JVM_ENDS_WITHIN = 240.0


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "app.py").write_text(APP)
    for number in range(3):
        put_orders(tmp_path / "orders", f"{number}", (f"c{number}", "1.50"))
    for path in (tmp_path / "orders").iterdir():  # Spark takes the oldest first
        os.utime(path, (1_700_000_000 + int(path.stem),) * 2)
    return tmp_path


def reported(place: Path) -> bool:
    """The run has read the report of its first batch: it comes a moment after the commit."""
    lines = place / "ck/_floodmark/progress.jsonl"
    return lines.exists() and bool(lines.read_text().strip())


def written(place: Path) -> list[str]:
    return (place / "sink").read_text().splitlines()


ALL = ["0 c0", "1 c1", "2 c2"]


def test_a_jvm_that_is_killed_is_a_failure_and_the_run_goes_on_with_a_new_one(
    place: Path, drivers: list[Driver]
) -> None:
    driver = Driver(*NOW, "--set", "slow=99", "--restart", "on-failure", cwd=place)
    drivers.append(driver)
    driver.until(lambda: begun(place, 1) and reported(place))
    first = driver.jvm()
    os.kill(first, signal.SIGKILL)
    status, said = driver.ended()
    assert status == 0, said
    assert "batch 1 failed: the JVM was ended by SIGKILL" in said
    assert "its log, " in said
    assert "runs batch 1 again, which was in flight" in said
    assert "sales finished: 3 batches, 3 rows read, the last is batch 2" in said
    assert written(place) == ALL
    assert not (place / "ck/_floodmark/lease.json").exists()
    assert gone_within(first, 1)


def test_a_jvm_whose_heap_is_full_is_replaced_and_its_last_words_are_told(place: Path) -> None:
    small = ("--conf", "spark.driver.memory=512m", "--set", "fills=true")
    found = floodmark(*NOW, *small, "--restart", "on-failure", cwd=place)
    assert found.returncode == 0, found.stderr
    said = found.stdout + found.stderr
    assert "batch 1 failed: the JVM ended because its heap was full" in said
    (log,) = [line for line in said.splitlines() if "its log, " in line]
    assert "java.lang.OutOfMemoryError: Java heap space" in log
    assert "runs batch 1 again, which was in flight" in said
    assert written(place) == ALL
    assert not (place / "ck/_floodmark/lease.json").exists()


POISON = """
from floodmark import pipeline

@pipeline(checkpoint="ck")
def sales(spark, start, *, most: int):
    orders = spark.readStream.schema("customerId STRING, amountPaid INT").csv("orders")
    rows = orders.selectExpr(
        f"if(amountPaid > {most}, raise_error('too much: ' || amountPaid), amountPaid) AS amount"
    )
    return rows.writeStream.format("parquet").option("path", "sink")
"""


def test_a_batch_that_fails_for_good_is_told_with_the_command_that_names_the_record(
    tmp_path: Path,
) -> None:
    (tmp_path / "app.py").write_text(POISON)
    (tmp_path / "orders").mkdir()
    (tmp_path / "orders/a.csv").write_text("c1,1\nc2,2\nc3,99\nc4,4\n")
    found = floodmark(*NOW, "--restart", "on-failure", "--set", "most=50", cwd=tmp_path)
    assert found.returncode == 1, found.stderr
    assert "failed 3 times in the same way: batch 0" in found.stderr
    assert 'source 0 (file): its start → {"logOffset":0}' in found.stderr
    words = "This command finds the record at which it fails: "
    (hint,) = [line for line in found.stderr.splitlines() if words in line]
    command = shlex.split(hint.partition(words)[2])
    assert (command[0], command[-1]) == ("floodmark", "--bisect")

    named = floodmark(*command[1:], cwd=tmp_path)

    assert named.returncode == 1, named.stderr
    file = f"file://{tmp_path}/orders/a.csv"
    assert f"This record alone fails: source 0 (csv): {file}, line 3" in named.stdout
    assert "the rest of the batch does not fail in this way" in named.stdout
    assert not list((tmp_path / "sink").glob("*.parquet")), "nothing is written"
    assert not (tmp_path / "ck/commits/0").exists(), "and nothing skipped"


def test_without_a_restart_its_end_is_told_with_the_log_and_the_batch(
    place: Path, drivers: list[Driver]
) -> None:
    driver = Driver(*NOW, "--set", "slow=99", cwd=place)
    drivers.append(driver)
    driver.until(lambda: begun(place, 1))
    os.kill(driver.jvm(), signal.SIGKILL)
    status, said = driver.ended()
    assert status == 5, said
    assert "StoppedMidway: pipeline sales failed: batch 1" in said
    assert "the JVM was ended by SIGKILL" in said
    assert "a bug" not in said
    (log,) = [line.split()[-1].rstrip(".") for line in said.splitlines() if "Spark's log" in line]
    assert Path(log).exists()
    Path(log).unlink()
    assert not (place / "ck/_floodmark/lease.json").exists()


def test_a_signal_to_the_whole_group_lets_the_batch_finish(
    place: Path, drivers: list[Driver]
) -> None:
    port = free_port()
    driver = Driver(*RUN, "--set", "slow=3", "--health-port", str(port), cwd=place)
    drivers.append(driver)
    driver.until(lambda: begun(place, 1) and reported(place))
    jvm = driver.jvm()
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=120) as answer:
        health = json.load(answer)
    assert health["ready"]
    assert health["pipelines"][0]["last_commit_age_s"] is not None
    os.killpg(driver.process.pid, signal.SIGTERM)  # as systemd, timeout and a shell do
    status, said = driver.ended()
    assert status == 0, said
    assert "sales stopped: 2 batches, 2 rows read, the last is batch 1" in said
    assert logged(place, "commits") == logged(place, "offsets") == [0, 1]
    assert written(place) == ALL[:2]
    assert gone_within(jvm, JVM_ENDS_WITHIN)


def test_a_batch_that_fails_while_the_run_stops_is_a_failure(
    place: Path, drivers: list[Driver]
) -> None:
    driver = Driver(*RUN, "--set", "slow=3", "--set", "fails=true", cwd=place)
    drivers.append(driver)
    driver.until(lambda: begun(place, 1))
    status, said = driver.terminate()
    assert status == 5, said
    assert "pipeline sales failed while it was stopped: batch 1" in said
    assert "ValueError: no such region" in said
    assert not (place / "ck/_floodmark/lease.json").exists()


def test_the_jvm_never_outlives_a_driver_that_is_killed(place: Path, drivers: list[Driver]) -> None:
    driver = Driver(*RUN, "--set", "slow=99", cwd=place)
    drivers.append(driver)
    driver.until(lambda: begun(place, 1))
    jvm = driver.jvm()
    os.kill(driver.process.pid, signal.SIGKILL)
    assert gone_within(jvm, JVM_ENDS_WITHIN)
    assert driver.ended()[0] == -signal.SIGKILL


def test_a_signal_while_the_jvm_starts_starts_no_query(place: Path, drivers: list[Driver]) -> None:
    driver = Driver(*RUN, cwd=place)
    drivers.append(driver)
    driver.until(lambda: len(family(driver.process.pid)) > 1)
    os.killpg(driver.process.pid, signal.SIGTERM)
    status, said = driver.ended()
    assert status == 0, said
    assert "sales stopped: 0 batches" in said
    assert not (place / "ck").exists()


def test_broken_side_files_and_a_reader_that_goes_never_stop_a_stream(place: Path) -> None:
    (place / "ck").mkdir()
    (place / "ck/_floodmark").write_text("no folder: nothing can be written below")
    command = [sys.executable, "-c", MAIN, *NOW, "--progress", "/dev/full"]
    driver = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=place, start_new_session=True
    )
    assert driver.stdout is not None
    first = driver.stdout.readline().decode()
    driver.stdout.close()  # as `| head -1` does
    assert driver.wait(PATIENCE_SECONDS) == 0, first
    assert first
    assert written(place) == ALL


def test_progress_that_cannot_be_kept_is_told_once(place: Path) -> None:
    done = floodmark(*NOW, "--progress", "/dev/full", "--json", cwd=place)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("no progress is kept in /dev/full: No space left on device") == 1
    (report,) = json.loads(done.stdout)["pipelines"]
    assert (report["batches"], report["rows"], report["last_batch"]) == (3, 3, 2)


OWN_SESSION = """
from pyspark.sql import SparkSession

spark = SparkSession.builder.appName("own"){more}.getOrCreate()
"""


def test_the_options_reach_a_session_that_the_application_builds(place: Path) -> None:
    code = (place / "app.py").read_text()
    report = "\n    print('master', spark.sparkContext.master, spark.conf.get('spark.own.setting'))"
    code = code.replace("    reader = ", report.lstrip("\n") + "\n    reader = ")
    (place / "app.py").write_text(OWN_SESSION.format(more="") + code)
    done = floodmark(*NOW, "--conf", "spark.own.setting=given", cwd=place)
    assert done.returncode == 0, done.stderr
    assert "master local[1] given" in done.stdout
    (place / "app.py").write_text(OWN_SESSION.format(more='.master("local[3]")') + code)
    refused = floodmark(*NOW, cwd=place)
    assert refused.returncode == 2
    assert "--master says local[1], but the application's own session has local[3]" in (
        refused.stderr
    )
