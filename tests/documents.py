"""The commands that stand in the documents, and a folder with the places that they name."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import textwrap
from pathlib import Path

import samples

ROOT = Path(__file__).parents[1]
SITE = sorted((ROOT / "docs").rglob("*.md"))
DOCUMENTS = [ROOT / "README.md", *SITE]
GOLDEN = ROOT / "tests" / "golden" / "4.2" / "sales-hdfs" / "checkpoint"
STARTS_SPARK = {
    *("run", "demo", "check", "migrate", "bootstrap", "leave-dstreams", "replay", "compare"),
    "drill",
}
# What a reader has elsewhere, or what goes on until it is stopped, and the tests that run it.
ELSEWHERE = {
    "broker:9092": "tests/integration/test_lag_kafka.py",
    "--commit-to-group": "tests/integration/test_commit_to_group.py",
    "s3://": "tests/integration/test_spark_s3.py",
    "floodmark serve": "tests/web",
    "spark-pipeline.yml": "tests/engine/test_declarative.py",
    "pip install": "tests/release",
    "make ": "tests/test_readme.py",
    "man ": "tests/release",  # a pager
    "scripts/lint_precision.py": "tests/rules/test_lint_rules.py",  # asks for a corpus
    "spark-submit": "tests/engine",
}


def _commands() -> list[tuple[str, str]]:
    """(where, command line) of every `$ …` in a console block, in the order of the page."""
    found = []
    for document in DOCUMENTS:
        blocks = re.finditer(r"^( *)```console\n(.*?)^ *```", document.read_text(), re.M | re.S)
        for block in blocks:
            joined = textwrap.dedent(block[2]).replace("\\\n", " ")
            for line in joined.splitlines():
                if line.startswith("$ "):
                    found.append((str(document.relative_to(ROOT)), line[2:].strip()))
    return found


EVERY = _commands()


def code_of(document: str) -> list[str]:
    """The Python that a page shows."""
    return re.findall(r"^```python\n(.*?)^```", (ROOT / document).read_text(), re.M | re.S)


def is_elsewhere(command: str) -> bool:
    return any(part in command for part in ELSEWHERE)


def starts_spark(command: str) -> bool:
    if not command.startswith("floodmark "):
        return False
    _, verb, *arguments = shlex.split(command)
    return verb in STARTS_SPARK or (verb in ("inspect", "state") and "--trust" in arguments)


def asks_for_the_demo(command: str) -> bool:
    return "data/demo" in command or "data/orders" in command


SALES = """
from floodmark import pipeline
from pyspark.sql import functions as F

@pipeline(checkpoint="data/checkpoints/totals", conf={"spark.sql.shuffle.partitions": 2})
def totals(spark, start):
    schema = "transactionId STRING, customerId STRING, itemId STRING, amountPaid DOUBLE"
    rows = spark.readStream.schema(schema).json("data/in")
    sums = rows.groupBy("customerId").agg(F.sum("amountPaid"), F.count("*"))
    return sums.writeStream.outputMode("complete").format("memory").queryName("totals").trigger(
        availableNow=True
    )
"""
SALE = {"transactionId": "1", "customerId": "c1", "itemId": "7", "amountPaid": 20.5}


def prepared(folder: Path) -> Path:
    """A folder with the places that the documents name."""
    samples.write(folder / "data/checkpoints/sales", samples.sales(60))
    for name, golden in (("orders", "kafka"), ("union", "union")):
        place = GOLDEN.parents[1] / golden / "checkpoint"
        shutil.copytree(place, folder / "data" / "checkpoints" / name)
    samples.write(folder / "data/checkpoints/files", samples.file_stream())
    for name in ("data/checkpoints/totals", "data/old-checkpoint"):
        shutil.copytree(GOLDEN, folder / name)
    damaged = shutil.copytree(GOLDEN, folder / "data/checkpoints/damaged")
    newest = max((damaged / "commits").glob("[0-9]*"), key=lambda path: int(path.name))
    newest.write_text("")
    newest.with_name(f".{newest.name}.crc").unlink(missing_ok=True)
    for path in sorted((folder / "data").rglob("*")):
        os.utime(path, (1_700_000_000, 1_700_000_000))  # no query runs on them
    shutil.copytree(ROOT / "examples", folder / "examples")
    (folder / "tests").symlink_to(ROOT / "tests")
    (folder / "sales.py").write_text(SALES)
    (folder / "streams").mkdir()
    return folder
