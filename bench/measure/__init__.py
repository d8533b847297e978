"""Ratios, side by side in one run: absolute times on a shared machine say nothing.

Where both sides are short and single-threaded their processor time is compared,
which a busy neighbour disturbs least; against Spark it is the time a person waits.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

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


def own_peak_memory_mb() -> float:
    """Of this process alone: what getrusage says begins with the peak of its parent."""
    status = Path("/proc/self/status")
    if not status.is_file():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    [line] = [line for line in status.read_text().splitlines() if line.startswith("VmHWM:")]
    return int(line.split()[1]) / 1024


def s3_server() -> Any:
    """A real S3 server on this machine, not started yet: that of the tests."""
    root = Path(__file__).parents[2]
    sys.path[:0] = [str(root / "tests"), str(root / "scripts")]
    import services as fetching  # type: ignore[import-not-found]

    del sys.modules["services"]  # scripts/services.py, and then the package tests/services
    sys.path.remove(str(root / "scripts"))
    from services.s3 import S3Server  # type: ignore[import-not-found]

    return S3Server(fetching.s3_server())


# A shared machine moves a ratio by a tenth from run to run: what is nearer to its limit than
# this is called close, and only what is further beyond it is missed.
NOISE = 0.15
RESULTS = "FLOODMARK_BENCH_RESULTS"
"""The environment variable that names a file for the results, as JSON."""


class Claims:
    """Prints each claim with its measure, and fails the run if one is missed."""

    def __init__(self) -> None:
        self._told: list[dict[str, object]] = []
        self._series: list[dict[str, object]] = []

    def at_least(self, claim: str, measured: float, wanted: float) -> None:
        self._say(claim, measured, "at least", wanted, wanted - measured)

    def at_most(self, claim: str, measured: float, wanted: float) -> None:
        self._say(claim, measured, "at most", wanted, measured - wanted)

    def grows(self, name: str, of: str, unit: str, points: Sequence[tuple[float, float]]) -> None:
        """How `unit` grows with the number of something: a plot, without a limit."""
        self._series.append({"name": name, "of": of, "unit": unit, "points": list(points)})
        self._keep()
        for number, value in points:
            print(f"       {name}: {number:,} {of}, {value:.4g} {unit}")

    def _say(self, claim: str, measured: float, bound: str, wanted: float, beyond: float) -> None:
        held = "yes" if beyond <= 0 else "close" if beyond <= wanted * NOISE else "no"
        mark = {"yes": "ok    ", "close": "close ", "no": "MISSED"}[held]
        print(f"{mark} {claim}: {measured:.3g} ({bound} {wanted:g})", flush=True)
        self._told.append(
            {"claim": claim, "measured": measured, "bound": bound, "limit": wanted, "held": held}
        )
        self._keep()

    def _keep(self) -> None:
        """After each measure: a run that is cut off has kept the ones before."""
        place = os.environ.get(RESULTS)
        if place:
            Path(place).write_text(json.dumps({"claims": self._told, "series": self._series}))

    def finish(self) -> None:
        self._keep()
        sys.exit(1 if any(told["held"] == "no" for told in self._told) else 0)


FLOODMARK = str(Path(sys.executable).with_name("floodmark"))
