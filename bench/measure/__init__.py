"""Ratios, side by side in one run: absolute times on a shared machine say nothing.

Where both sides are short and single-threaded their processor time is compared,
which a busy neighbour disturbs least; against Spark it is the time a person waits.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

CONF = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"
    ),
    "spark.sql.streaming.join.stateFormatVersion": "2",
    "spark.sql.streaming.stateStore.compression.codec": "lz4",
    "spark.sql.streaming.statefulOperator.useStrictDistribution": "true",
    "spark.sql.streaming.multipleWatermarkPolicy": "min",
    "spark.sql.streaming.aggregation.stateFormatVersion": "2",
    "spark.sql.shuffle.partitions": "4",
}


def write_checkpoint(folder: Path, batches: int, partitions: int = 8) -> Path:
    """A healthy Kafka checkpoint with as many batches as asked for."""
    for log in ("offsets", "commits"):
        (folder / log).mkdir(parents=True)
    (folder / "metadata").write_text('{"id":"5a0c362f-824f-43a3-940d-3be0f4a399fd"}')
    for batch in range(batches):
        metadata = {
            "batchWatermarkMs": 0,
            "batchTimestampMs": 1_794_725_000_000 + batch * 10_000,
            "conf": CONF,
        }
        offset = {"orders": {str(n): batch * 100 + n for n in range(partitions)}}
        lines = ("v1", _compact(metadata), _compact(offset))
        (folder / "offsets" / str(batch)).write_text("\n".join(lines))
        (folder / "commits" / str(batch)).write_text('v1\n{"nextBatchWatermarkMs":0}')
    return folder


def _compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


def command_seconds(command: Sequence[str]) -> float:
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def command_cpu_seconds(command: Sequence[str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def call_cpu_seconds(function: Callable[[], object]) -> float:
    start = time.process_time()
    function()
    return time.process_time() - start


def best(times: int, *measures: Callable[[], float]) -> list[float]:
    """The best time of each, taken in turns so that a noisy moment hits them all."""
    rounds = [[measure() for measure in measures] for _ in range(times)]
    return [min(column) for column in zip(*rounds, strict=True)]


def peak_memory_mb() -> float:
    """Of the children that have ended."""
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024


class Claims:
    """Prints each claim with its measure, and fails the run if one does not hold."""

    def __init__(self) -> None:
        self._failed = 0

    def at_least(self, claim: str, measured: float, wanted: float) -> None:
        self._say(claim, measured, "at least", wanted, measured >= wanted)

    def at_most(self, claim: str, measured: float, wanted: float) -> None:
        self._say(claim, measured, "at most", wanted, measured <= wanted)

    def _say(self, claim: str, measured: float, bound: str, wanted: float, held: bool) -> None:
        self._failed += not held
        mark = "ok    " if held else "MISSED"
        print(f"{mark} {claim}: {measured:.2f} ({bound} {wanted:g})")

    def finish(self) -> None:
        sys.exit(1 if self._failed else 0)


FLOODMARK = str(Path(sys.executable).with_name("floodmark"))
