"""What `floodmark run` costs beside plain `writer.start()`: 200 batches, and a restart.

Both sides' times are read from the checkpoints that they leave: when the first offset
was written, and when the last commit was. The batches are taken in slices, in turns, in
one JVM, so that a noisy neighbour hits both sides; the sums of all slices are compared,
not the best ones, which on a busy machine are luck.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from measure import FLOODMARK, Claims, best

SLICES = 20
BATCHES_A_SLICE = 10
STARTS = 5
MASTER = "local[2]"
CONF = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.log.level": "ERROR",
}

APPLICATION = """
from floodmark import pipeline


@pipeline(checkpoint="{base}/checkpoint")
def orders(spark, start, *, base: str):
    rows = spark.readStream.schema("id BIGINT, amount BIGINT").option("maxFilesPerTrigger", 1)
    return rows.json(f"{base}/input").where("amount > 0").writeStream.format("noop")
"""
PLAIN = """
import json, sys
from pyspark.sql import SparkSession

base, conf = sys.argv[1], json.loads(sys.argv[2])
builder = SparkSession.builder
for key, value in conf.items():
    builder = builder.config(key, value)
spark = builder.getOrCreate()
rows = spark.readStream.schema("id BIGINT, amount BIGINT").option("maxFilesPerTrigger", 1)
writer = rows.json(f"{base}/input").where("amount > 0").writeStream.format("noop")
writer = writer.option("checkpointLocation", f"{base}/checkpoint").trigger(availableNow=True)
writer.start().awaitTermination()
spark.stop()
"""


class Stream:
    """A folder with input and a checkpoint, and someone who runs what is new in it."""

    def __init__(self, base: Path, run: Callable[[Path], None]) -> None:
        self.base = base
        self._run = run
        self._fed = 0
        (base / "input").mkdir(parents=True)

    def feed(self, batches: int) -> None:
        for _ in range(batches):
            rows = [json.dumps({"id": self._fed * 10 + n, "amount": n}) for n in range(10)]
            (self.base / "input" / f"{self._fed:05d}.json").write_text("\n".join(rows))
            self._fed += 1

    def slice_seconds(self, batches: int) -> float:
        """From the first new offset to the last new commit."""
        self.feed(batches)
        before = self._committed()
        self._run(self.base)
        assert self._committed() == before + batches, (before, self._committed())
        return self._written(f"commits/{self._fed - 1}") - self._written(f"offsets/{before}")

    def first_commit_seconds(self) -> float:
        """From nothing running to the first new commit."""
        self.feed(1)
        before = self._committed()
        began = time.time()
        self._run(self.base)
        return self._written(f"commits/{before}") - began

    def _committed(self) -> int:
        """The number of the next batch to commit: old commits are purged."""
        folder = self.base / "checkpoint" / "commits"
        names = (path.name for path in folder.iterdir()) if folder.exists() else ()
        return max((int(name) for name in names if name.isdecimal()), default=-1) + 1

    def _written(self, path: str) -> float:
        return (self.base / "checkpoint" / path).stat().st_mtime


@contextlib.contextmanager
def one_session() -> Iterator[Any]:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(MASTER)
    for key, value in CONF.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    try:
        yield session
    finally:
        session.stop()


def in_session(folder: Path, spark: Any) -> tuple[Stream, Stream]:
    from floodmark.engine.pipelines.application import load_application
    from floodmark.engine.pipelines.start_positions import Start
    from floodmark.engine.run.options import RunOptions
    from floodmark.engine.run.runtime import run_application
    from floodmark.engine.run.triggers import Trigger

    application = load_application(str(folder / "app.py"))

    def ours(base: Path) -> None:
        with open(os.devnull, "w") as nowhere, contextlib.redirect_stderr(nowhere):
            run_application(application, RunOptions(Trigger(True), {"base": str(base)}))

    def plain(base: Path) -> None:
        writer = application.pipelines[0](spark.newSession(), Start(), base=str(base))
        writer = writer.option("checkpointLocation", f"{base}/checkpoint")
        writer.trigger(availableNow=True).start().awaitTermination()

    return Stream(folder / "ours", ours), Stream(folder / "plain", plain)


def as_processes(folder: Path) -> tuple[Stream, Stream]:
    conf = {"spark.master": MASTER, **CONF}

    def ours(base: Path) -> None:
        options = [f"--conf={key}={value}" for key, value in conf.items()]
        command = [FLOODMARK, "run", str(folder / "app.py"), "--available-now", *options]
        _quietly([*command, "--set", f"base={base}"])

    def plain(base: Path) -> None:
        _quietly([sys.executable, "-c", PLAIN, str(base), json.dumps(conf)])

    return Stream(folder / "ours-process", ours), Stream(folder / "plain-process", plain)


def _quietly(command: list[str]) -> None:
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def main() -> None:
    claims = Claims()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "app.py").write_text(APPLICATION)
        compare_batches(folder, claims)
        compare_starts(folder, claims)
    claims.finish()


def compare_batches(folder: Path, claims: Claims) -> None:
    with one_session() as spark:
        streams = in_session(folder, spark)
        for stream in streams:
            stream.slice_seconds(BATCHES_A_SLICE)  # the JVM warms up
        pairs = [_pair(streams, number) for number in range(SLICES)]
    batches = SLICES * BATCHES_A_SLICE
    ours, plain = (sum(column) for column in zip(*pairs, strict=True))
    ratios = sorted(one / other for one, other in pairs)
    print(
        f"{batches} batches: floodmark {ours:.1f} s, plain {plain:.1f} s; "
        f"slice by slice {ratios[0]:.2f} to {ratios[-1]:.2f}"
    )
    claims.at_most(f"times plain Spark's time for {batches} batches", ours / plain, 1.03)


def _pair(streams: tuple[Stream, Stream], number: int) -> tuple[float, float]:
    """Seconds of a slice of each; who goes first takes turns, too."""
    seconds = [0.0, 0.0]
    for side in (0, 1) if number % 2 else (1, 0):
        seconds[side] = streams[side].slice_seconds(BATCHES_A_SLICE)
    return seconds[0], seconds[1]


def compare_starts(folder: Path, claims: Claims) -> None:
    streams = as_processes(folder)
    for stream in streams:
        stream.first_commit_seconds()  # makes the checkpoint that the others go on from
    ours, plain = best(STARTS, *(stream.first_commit_seconds for stream in streams))
    print(f"start to first commit: floodmark {ours:.2f} s, plain {plain:.2f} s")
    claims.at_most("times plain Spark's time from start to first commit", ours / plain, 1.3)


if __name__ == "__main__":
    main()
