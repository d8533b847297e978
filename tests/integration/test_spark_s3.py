"""Checkpoints that Spark itself writes to S3: run, read, moved, rewritten and run on.

Spark speaks s3a:// with the jars that floodmark resolves, floodmark's own verbs s3://: both are one
place. A batch query over all input says what the stream must have.
"""

from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import floodmark
from floodmark import api
from floodmark.changes.apply import Carrying
from floodmark.checkpoint.relative_path import RelativePath
from floodmark.engine.spark.hadoop import checkpoint_files
from floodmark.engine.start.launch import start
from floodmark.errors import Refused

if TYPE_CHECKING:
    from services.s3 import S3Server

pytestmark = [pytest.mark.spark, pytest.mark.services]

APPLICATION = """
from floodmark import pipeline

@pipeline(checkpoint="{root}/checkpoint")
def sales(spark, start, *, root, orders, sink):
    rows = spark.readStream.schema("customer STRING, paid LONG").json(orders)
    summed = rows.groupBy("customer").agg({sums})

    def write(batch, number):
        batch.coalesce(1).write.mode("overwrite").json(sink)

    return summed.writeStream.outputMode("complete").foreachBatch(write)
"""
TOTAL = 'F.sum("paid").alias("total")'
COUNTED = f'{TOTAL}, F.count("paid").alias("count")'


@pytest.fixture
def session(spark: Any, s3: S3Server) -> Any:
    """A session of its own: where S3 is and who asks is not the business of the others."""
    found = spark.newSession()
    for key, value in s3.spark_conf.items():
        found.conf.set(key.removeprefix("spark.hadoop."), value)
    return found


def feed(folder: Path, *numbers: int) -> None:
    folder.mkdir(exist_ok=True)
    for number in numbers:
        line = f'{{"customer": "c{number % 3}", "paid": {number}}}\n'
        (folder / f"{number}.json").write_text(line)


def totals(session: Any, orders: Path, sink: Path) -> Any:
    rows = session.readStream.schema("customer STRING, paid LONG").json(str(orders))

    def write(batch: Any, _number: int) -> None:
        batch.coalesce(1).write.mode("overwrite").json(str(sink))

    summed = rows.groupBy("customer").sum("paid").toDF("customer", "total")
    writer = summed.writeStream.outputMode("complete").foreachBatch(write)
    return writer.trigger(availableNow=True)


def oracle(orders: Path) -> dict[str, int]:
    found: dict[str, int] = {}
    for file in orders.glob("*.json"):
        row = json.loads(file.read_text())
        found[row["customer"]] = found.get(row["customer"], 0) + row["paid"]
    return found


def written(sink: Path) -> dict[str, int]:
    lines = [line for file in sink.glob("*.json") for line in file.read_text().splitlines()]
    return {row["customer"]: row["total"] for row in map(json.loads, lines)}


def test_spark_writes_to_s3_and_floodmark_reads_rewrites_and_runs_on(
    session: Any, s3: S3Server, tmp_path: Path
) -> None:
    orders, sink, place = tmp_path / "orders", tmp_path / "sink", s3.place("spark")
    old, new = f"{place}/ck", f"{place}/new"
    feed(orders, *range(1, 7))
    running = start(totals(session, orders, sink), old.replace("s3://", "s3a://"))
    try:
        # The lease that Spark's Hadoop wrote at s3a:// is seen at s3://.
        with pytest.raises(Refused):
            api.upgrade(old, new, carrying=Carrying(execute=True, storage=s3.storage_options))
        assert running.awaitTermination(120)
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
    assert again.awaitTermination(120)
    assert again.exception() is None
    assert written(sink) == oracle(orders)
    assert api.inspect(new, s3.storage_options).state[0].partitions == 3


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


class Commands:
    """`floodmark` on a stream whose checkpoints lie on S3."""

    def __init__(self, s3: S3Server, folder: Path) -> None:
        self.s3, self.folder = s3, folder
        self.place = s3.place("commands")
        self.orders, self.sink = folder / "orders", folder / "sink"
        self.conf = [part for pair in s3.spark_conf.items() for part in ("--conf", "=".join(pair))]
        self.conf += ["--conf", "spark.sql.shuffle.partitions=2", "--master", "local[2]"]
        options = s3.storage_options
        self.storage = ["--storage", f"key={options['key']}", "--storage"]
        self.storage += [f"secret={options['secret']}", "--storage"]
        self.storage += [f"endpoint_url={options['endpoint_url']}", "--storage"]
        self.storage += ['client_kwargs={"region_name": "us-east-1"}']

    def write(self, name: str, sums: str) -> Path:
        path = self.folder / name
        text = APPLICATION.replace("{sums}", sums)
        path.write_text(f"import pyspark.sql.functions as F\n{text}")
        return path

    def root(self, name: str) -> str:
        return f"{self.place}/{name}"

    def settings(self, root: str) -> list[str]:
        given = {"root": root, "orders": self.orders, "sink": self.sink}
        return [part for key, value in given.items() for part in ("--set", f"{key}={value}")]

    def run(self, *arguments: str, expected: int = 0) -> str:
        command = [str(Path(sys.executable).with_name("floodmark")), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=400, check=False)
        assert done.returncode == expected, f"{arguments}\n{done.stdout}\n{done.stderr}"
        return done.stdout + done.stderr

    def stream(self, app: Path, name: str, *more: str) -> str:
        root = self.root(name).replace("s3://", "s3a://")
        return self.run("run", str(app), "--available-now", *self.settings(root), *self.conf, *more)


@pytest.fixture
def commands(s3: S3Server, tmp_path: Path) -> Commands:
    made = Commands(s3, tmp_path)
    feed(made.orders, *range(1, 7))
    return made


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_run_migrate_repartition_rehearse_and_bootstrap_on_s3(commands: Commands) -> None:
    first, second = commands.write("first.py", TOTAL), commands.write("second.py", COUNTED)
    told = commands.stream(first, "a")
    assert "slow-file-manager" in told, "Spark's default on S3 is named, with what is quicker"
    assert written(commands.sink) == oracle(commands.orders)
    old = f"{commands.root('a')}/checkpoint"

    settings = commands.settings(commands.root("a").replace("s3://", "s3a://"))
    common = [*settings, *commands.conf, *commands.storage]
    same = json.loads(
        commands.run("check", old, str(first), "--rehearse", "--json", *common).partition("\n{")[0]
        or "{}"
    )
    assert same["decided_by"] == "rehearsal"
    assert same["verdict"] in ("same", "compatible")

    moved = f"{commands.root('b')}/checkpoint"
    commands.run("migrate", old, moved, "--app", str(second), "--execute", "--wait", "60", *common)
    feed(commands.orders, 7, 8)
    commands.stream(second, "b")
    assert written(commands.sink) == oracle(commands.orders)

    spread = f"{commands.root('c')}/checkpoint"
    commands.run("repartition", moved, spread, "--partitions", "5", "--execute", *commands.storage)
    feed(commands.orders, 9, 10)
    commands.stream(second, "c", "--conf", "spark.sql.shuffle.partitions=5")
    assert written(commands.sink) == oracle(commands.orders)

    rows = [{"customer": key, "total": value} for key, value in oracle(commands.orders).items()]
    table = commands.folder / "state.json"
    table.write_text(
        "".join(json.dumps({"customer": r["customer"], "sum": r["total"]}) + "\n" for r in rows)
    )
    assert floodmark.inspect(spread, commands.s3.storage_options).state[0].partitions == 5
