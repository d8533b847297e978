"""What it costs to save the state of DStreams with every batch, instead of every 5 to 10.

The same job over the same state of 50,000 keys, batches of 1 second: with save_state equal to the
batch, and with the interval that `@dstream` chooses, twice each, in turns. The saved states are
counted in the folder as they come. A batch's time is the median of the progress lines.

The number of saved states is claimed. The time is measured and not claimed: on a local disk it is
about the same, and what saving with every batch costs is a storage's latency for each file.
"""

from __future__ import annotations

import json
import os
import signal
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from measure import FLOODMARK, Claims

KEYS = 50_000
BATCHES = 20
APPLICATION = """
from floodmark import dstream


def update(new, old):
    return (old or 0) + sum(new)


@dstream(checkpoint="{base}/cp", batch="1s"{save})
def totals(ssc):
    lines = ssc.textFileStream("{base}/in").map(lambda line: (int(line), 1))
    lines.updateStateByKey(update, 2).foreachRDD(lambda time, rdd: print(rdd.count()))
"""
CONF = ("spark.ui.enabled=false", "spark.driver.host=127.0.0.1", "spark.driver.memory=2g")


@dataclass(frozen=True)
class Run:
    milliseconds: tuple[int, ...]
    """Of each batch, without those that the keys came in."""
    saved: float
    """States that were saved, a batch."""


def main() -> None:
    often: list[Run] = []
    seldom: list[Run] = []
    for turn in range(2):
        for name, save, runs in (("often", ', save_state="1s"', often), ("seldom", "", seldom)):
            with tempfile.TemporaryDirectory(prefix="floodmark-bench-") as folder:
                runs.append(_measured(Path(folder) / name, save))
            print(f"turn {turn}, {name}: {runs[-1].saved:.2f} saved states a batch", flush=True)
    claims = Claims()
    times = [(1, _median(often)), (10, _median(seldom))]
    claims.grows("time of a batch", "batches between two saved states", "ms", times)
    saved = sum(run.saved for run in seldom) / sum(run.saved for run in often)
    claims.at_most("saved states, at the chosen interval over every batch", saved, 0.25)
    claims.finish()


def _median(runs: list[Run]) -> float:
    return statistics.median(one for run in runs for one in run.milliseconds)


def _measured(base: Path, save: str) -> Run:
    (base / "in").mkdir(parents=True)
    app = base / "app.py"
    app.write_text(APPLICATION.format(base=base, save=save))
    command = [FLOODMARK, "run", str(app), *(word for one in CONF for word in ("--conf", one))]
    with (base / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
        try:
            _until(lambda: any((base / "cp").glob("checkpoint-*")))
            beside = base / ".keys"
            beside.write_text("".join(f"{key}\n" for key in range(KEYS)))
            os.utime(beside)
            beside.rename(base / "in" / "keys.txt")
            _until(lambda: len(_batches(base)) >= 10)
            seen, begun = set(_saved(base)), len(_batches(base))

            def enough() -> bool:
                seen.update(_saved(base))
                return len(_batches(base)) >= begun + BATCHES

            before = len(seen)
            _until(enough)
            done = _batches(base)[begun:]
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    milliseconds = tuple(one["duration_ms"] for one in done)
    return Run(milliseconds, (len(seen) - before) / len(done))


def _saved(base: Path) -> list[str]:
    """Spark removes them again, so they are counted while they come."""
    return [one.name for one in (base / "cp").glob("*/rdd-*")]


def _batches(base: Path) -> list[dict[str, int]]:
    lines = base / "cp" / "_floodmark" / "progress.jsonl"
    if not lines.exists():
        return []
    return [json.loads(line) for line in lines.read_text().splitlines() if line.endswith("}")]


def _until(reached: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 240
    while not reached():
        if time.monotonic() > deadline:
            raise TimeoutError
        time.sleep(0.2)


if __name__ == "__main__":
    main()
