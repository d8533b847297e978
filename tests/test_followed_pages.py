"""Pages whose commands start Spark, followed by a reader: each command as it stands, in its
order, on streams that the reader has run before; and it says what the page says.

A test names every such command of its page, so that one that is added has to be followed too.
"""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest

from demonstration import MAIN, Demo
from documents import EVERY, SALE, SALES, code_of, is_elsewhere, prepared, starts_spark

pytestmark = [pytest.mark.spark, pytest.mark.soak, pytest.mark.timeout(1800)]

OLD_SALES = SALES.replace(', F.count("*")', "")
SCRIPT = """
import argparse
from pyspark.sql import SparkSession, functions as F

given = argparse.ArgumentParser()
given.add_argument("--day")
given.parse_args()
spark = SparkSession.builder.master("local[2]").config("spark.sql.shuffle.partitions", 2)
spark = spark.getOrCreate()
rows = spark.readStream.schema("customerId STRING, amount LONG").option("maxFilesPerTrigger", 1)
totals = rows.json("data/in").groupBy("customerId").agg(F.sum("amount").alias("total"))
(
    totals.writeStream.outputMode("update").format("noop").queryName("orders")
    .option("checkpointLocation", "data/checkpoints/orders").trigger(availableNow=True)
    .start().awaitTermination()
)
"""


class Reader:
    """Follows one page in a folder."""

    def __init__(self, page: str, folder: Path) -> None:
        self.folder = folder
        self.left = [
            command
            for where, command in EVERY
            if where == page and starts_spark(command) and not is_elsewhere(command)
        ]

    def runs(self, start: str, says: str, ends: int = 0) -> str:
        """The page's next command, which begins so."""
        command = self.left.pop(0)
        assert command.startswith(start), command
        return self.gives(command, says, ends)

    def gives(self, command: str, says: str = "", ends: int = 0) -> str:
        done = subprocess.run(
            ["bash", "-c", _shell(command)],
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=900,
            check=False,
        )
        told = f"{done.stdout}\n{done.stderr}"
        assert done.returncode == ends, f"{command}\n{told}"
        assert says in told, f"{command}\n{told}"
        return told

    def runs_until(self, start: str, progress: str, batches: int) -> str:
        """A command that goes on until SIGTERM, which it gets after so many batches."""
        command = self.left.pop(0)
        assert command.startswith(start), command
        return self.goes_on(command, progress, batches)

    def goes_on(self, command: str, progress: str, batches: int, saved: int = 0) -> str:
        """`saved`: a time in milliseconds; DStreams go on until they have saved a batch of then.

        They save late what is done while Spark plans the batches that were missed.
        """
        place = self.folder / progress
        before = len(_lines(place))
        with subprocess.Popen(
            ["bash", "-c", f"exec {_program()} {command.removeprefix('floodmark ')}"],
            cwd=self.folder,
            stderr=subprocess.PIPE,
            text=True,
        ) as started:
            until = time.monotonic() + 300
            try:
                while started.poll() is None and (
                    len(_lines(place)) < before + batches
                    or (saved and _newest_saved(place.parents[1]) < saved)
                ):
                    assert time.monotonic() < until, "no batch in five minutes"
                    time.sleep(0.5)
                started.send_signal(signal.SIGTERM)
                _, told = started.communicate(timeout=120)
            finally:
                started.kill()  # one that goes on would be waited for
        assert started.returncode == 0, f"{command}\n{told}"
        return told

    def has_done_all(self) -> None:
        assert self.left == []


def _program() -> str:
    return f'"{sys.executable}" -c "{MAIN}"'


def _shell(command: str) -> str:
    return f'floodmark() {{ {_program()} "$@"; }}; {command}'


def _newest_saved(checkpoint: Path) -> int:
    return max((int(file.stem[11:]) for file in checkpoint.glob("checkpoint-?*")), default=0)


def _lines(place: Path) -> list[str]:
    return place.read_text().splitlines() if place.exists() else []


def sold(folder: Path, name: str, **other: object) -> None:
    place = folder / "data/in" / name
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(json.dumps({**SALE, **other}))


def with_totals(reader: Reader, checkpoint: str) -> None:
    """The checkpoint of an earlier sales.py, which had no count."""
    shutil.rmtree(reader.folder / checkpoint, ignore_errors=True)
    sold(reader.folder, "0.json")
    old = OLD_SALES.replace("data/checkpoints/totals", checkpoint)
    (reader.folder / "sales.py").write_text(old)
    reader.gives("floodmark run sales.py", "1 batch, 1 row read")
    (reader.folder / "sales.py").write_text(SALES.replace("data/checkpoints/totals", checkpoint))


def with_orders(reader: Reader, batches: int) -> None:
    """The checkpoint of orders.py after so many batches of one file."""
    shutil.rmtree(reader.folder / "data/checkpoints/orders", ignore_errors=True)
    (reader.folder / "data/in").mkdir(parents=True)
    for number in range(batches):
        rows = [{"customerId": "c1", "amount": 1}, {"customerId": f"c{number}", "amount": 7}]
        place = reader.folder / "data/in" / f"{number:03}.json"
        place.write_text("\n".join(json.dumps(row) for row in rows))
    (reader.folder / "orders.py").write_text(SCRIPT)
    reader.gives("floodmark run orders.py")


def test_the_tutorial(demo: Demo) -> None:
    assert demo.status == 0, demo.err
    reader = Reader("docs/tutorial.md", demo.cwd)
    chosen = [command for page, command in EVERY if page == "docs/tutorial.md"][1:]
    assert len(chosen) > 10
    for command in chosen:
        reader.gives(command, ends=1 if command.startswith("floodmark check") else 0)


def test_changed_logic(tmp_path: Path) -> None:
    reader = Reader("docs/how-to/changed-logic.md", prepared(tmp_path))
    with_totals(reader, "data/checkpoints/totals")
    told = reader.runs("floodmark check", "needs-migration", ends=1)
    assert "floodmark migrate data/checkpoints/totals" in told
    reader.runs("floodmark migrate", "count is new")
    reader.has_done_all()


def test_a_new_spark(tmp_path: Path) -> None:
    reader = Reader("docs/how-to/new-spark.md", prepared(tmp_path))
    with_totals(reader, "data/checkpoints/sales")
    (tmp_path / "sales.py").write_text(
        OLD_SALES.replace("data/checkpoints/totals", "data/checkpoints/sales")
    )
    sold(tmp_path, "1.json", customerId="c2")
    reader.runs("floodmark check", "same")
    reader.has_done_all()


def test_carrying_state_over(tmp_path: Path) -> None:
    reader = Reader("docs/carrying.md", prepared(tmp_path))
    with_totals(reader, "data/old-checkpoint")
    new = (tmp_path / "sales.py").read_text()
    reader.runs("floodmark migrate", "count is new: 0 for every existing key")
    reader.runs("floodmark migrate", "over 8 partitions, in RocksDB")
    union = 'rows = spark.readStream.schema(schema).json("data/in")'
    (tmp_path / "data/more").mkdir()
    more = f'{union}.union(spark.readStream.schema(schema).json("data/more"))'
    (tmp_path / "sales.py").write_text(new.replace(union, more))
    reader.runs("floodmark migrate", "Source 1 (json data/more) is new")
    (tmp_path / "sales.py").write_text(new)
    reader.runs("floodmark migrate", "")
    skeleton = (tmp_path / "MIGRATION.py").read_text()
    assert "may not be null: put a value here" in skeleton
    (tmp_path / "MIGRATION.py").write_text(skeleton.replace("F.lit(None)", "F.lit(0)"))
    command = reader.left[0]
    reader.runs("floodmark migrate", "Nothing has been changed")
    reader.gives(f"{command} --execute", "new-checkpoint")
    (tmp_path / "old").mkdir()
    (tmp_path / "old/sales.py").write_text(OLD_SALES)
    reader.runs("floodmark migrate", "count(1) is left out")
    shutil.rmtree(tmp_path / "data/new-checkpoint")
    reader.gives("floodmark state data/old-checkpoint --export totals.parquet")
    kafka = """spark.readStream.format("kafka").option("kafka.bootstrap.servers", "localhost:9")
    rows = rows.option("subscribe", "orders").option("startingOffsets", start.kafka("orders"))
    rows = rows.load()
    rows = rows.select(F.from_json(F.col("value").cast("string"), schema).alias("o")).select("o.*")
"""
    (tmp_path / "sales.py").write_text(OLD_SALES.replace(union.removeprefix("rows = "), kafka))
    (tmp_path / "start.json").write_text('{"orders": {"0": 23, "1": 7}}')
    reader.runs("floodmark bootstrap", "the rows that were given")
    reader.has_done_all()


def test_checking(tmp_path: Path) -> None:
    reader = Reader("docs/checking.md", prepared(tmp_path))
    with_sales(reader)
    reader.runs("floodmark check", "same")
    reader.runs("floodmark check", "Spark has run one batch of it on a fork")
    reader.has_done_all()


def with_sales(reader: Reader) -> None:
    """The checkpoint and the input of examples/sales.py."""
    shutil.rmtree(reader.folder / "data/checkpoints/sales")
    place = reader.folder / "data/orders/0.csv"
    place.parent.mkdir()
    place.write_text("transactionId,customerId,itemId,amountPaid\n1,c1,7,20.50\n")
    reader.gives("floodmark run examples/sales.py --available-now", "1 batch, 1 row read")


def test_running(tmp_path: Path) -> None:
    reader = Reader("docs/running.md", prepared(tmp_path))
    with_sales(reader)
    reader.runs("floodmark run", "0 batches")
    reader.has_done_all()


def test_a_gate(tmp_path: Path) -> None:
    reader = Reader("docs/ci.md", prepared(tmp_path))
    with_totals(reader, "data/checkpoints/sales")
    new = (tmp_path / "sales.py").read_text()
    (tmp_path / "sales.py").write_text(OLD_SALES.replace('totals"', 'sales"', 1))
    shutil.rmtree(tmp_path / "data/checkpoints/sales/_floodmark")  # as plain Spark leaves it
    outlined = "floodmark outline data/checkpoints/sales -o streams/sales.outline.json"
    reader.gives(outlined, "It does not have the code that made the checkpoint")
    reader.runs("floodmark check", "same")
    reader.gives(outlined)
    (tmp_path / "sales.py").write_text(new)
    reader.runs("floodmark check", "aggregates-changed (FM322)", ends=1)
    reader.runs("floodmark check", "STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE", ends=1)
    reader.has_done_all()


def test_plain_scripts(tmp_path: Path) -> None:
    reader = Reader("docs/scripts.md", prepared(tmp_path))
    with_orders(reader, 2)
    (tmp_path / "old").mkdir()
    shutil.copy(tmp_path / "orders.py", tmp_path / "old/orders.py")
    counted = SCRIPT.replace('alias("total")', 'alias("total"), F.count("*").alias("orders")')
    reader.runs("floodmark check", "same")
    (tmp_path / "orders.py").write_text(counted)
    reader.runs("floodmark migrate", "count is new")
    (tmp_path / "orders.py").write_text(SCRIPT)
    reader.runs("floodmark run", "")
    reader.has_done_all()


def test_proving(tmp_path: Path) -> None:
    reader = Reader("docs/proving.md", prepared(tmp_path))
    with_orders(reader, 42)
    reader.runs("floodmark replay", "equals what the checkpoint has for batch 41, key by key")
    doubled = SCRIPT.replace('F.sum("amount")', '(F.sum("amount") * 2)')
    (tmp_path / "orders_v2.py").write_text(doubled)
    reader.runs("floodmark compare", "They differ", ends=1)
    (tmp_path / "orders.py").write_text(APPENDS)
    rows = [{"orderId": f"o{number}", "amount": 1.5 * number} for number in range(12)]
    (tmp_path / "samples").mkdir()
    (tmp_path / "samples/orders.jsonl").write_text("\n".join(json.dumps(row) for row in rows))
    told = reader.runs("floodmark drill", "rows repeated", ends=1)
    assert "orders.py: 12 rows in 4 batches" in told
    reader.has_done_all()


APPENDS = """
from floodmark import pipeline

@pipeline(checkpoint="data/checkpoints/appended")
def orders(spark, start):
    def write(batch, number):
        batch.write.format("delta").mode("append").save("data/orders")

    rows = spark.readStream.schema("orderId STRING, amount DOUBLE").json("data/in")
    return rows.writeStream.foreachBatch(write)
"""


def test_dstreams_are_run_and_left(tmp_path: Path) -> None:
    """With the page's own code, but for batches of one second."""
    reader = Reader("docs/leaving-dstreams.md", prepared(tmp_path))
    sales, structured = code_of("docs/leaving-dstreams.md")[:2]
    sales = f"def store(rows):\n    pass\n\n{sales.replace('5s', '1s')}"
    (tmp_path / "sales.py").write_text(sales)
    (tmp_path / "structured.py").write_text(structured)
    with zipfile.ZipFile(tmp_path / "sales.jar", "w") as jar:
        jar.writestr("META-INF/MANIFEST.MF", "Manifest-Version: 1.0\n")
    orders = tmp_path / "data/orders"
    orders.mkdir()
    progress = "data/dstreams/sales/_floodmark/progress.jsonl"
    reader.goes_on("floodmark run sales.py", progress, 2)
    (orders / "0.csv").write_text("1,c1,7,20.50\n")
    written = int(time.time() * 1000)
    reader.goes_on("floodmark run sales.py", progress, 14, saved=written + 12_000)
    reader.runs("floodmark inspect", "DStreams")
    reader.runs("floodmark state", "c1")
    (tmp_path / "sales.py").write_text(sales.replace("round(", "round(0.0 + "))
    reader.gives("floodmark run sales.py", "--fresh-with-state", ends=4)
    reader.runs_until("floodmark run sales.py --fresh", progress, 3)
    (tmp_path / "sales.py").write_text(sales.replace("round(", "round(1.0 + "))
    reader.runs_until("floodmark run sales.py --old-code", progress, 12)
    waits_for_quiet(tmp_path / "data/dstreams/sales")
    reader.runs("floodmark leave-dstreams", "Nothing has been changed")
    reader.runs("floodmark leave-dstreams", "data/structured/totals")
    told = reader.gives("floodmark state data/structured/totals")
    assert "c1" in told
    assert "20.5" in told
    (orders / "1.csv").write_text("2,c1,7,1.00\n")
    command = reader.left.pop(0)
    reader.goes_on(command, "data/structured/totals/_floodmark/progress.jsonl", 1)
    assert "21.5" in reader.gives("floodmark state data/structured/totals")
    reader.has_done_all()


def waits_for_quiet(checkpoint: Path) -> None:
    """As the page says: until the newest file is 10 seconds old."""
    until = time.monotonic() + 300
    newest = _newest_saved(checkpoint)
    while time.time() - newest / 1000 < 10:
        assert time.monotonic() < until
        time.sleep(0.5)
