"""What it costs to save the state of DStreams with every batch, instead of every 5 to 10.

The same job over the same state of 50,000 keys, batches of 1 second: once with
save_state equal to the batch, once with the interval that `@dstream` chooses. Each batch's time
is read from the progress lines that the run leaves.

It is measured and not claimed: on a local disk the time is about the same, and what saving with
every batch costs is files, and a storage's latency for each.
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
from pathlib import Path

from measure import FLOODMARK

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


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="floodmark-bench-") as folder:
        often, seldom = (
            _measured(Path(folder) / name, save)
            for name, save in (("often", ', save_state="1s"'), ("seldom", ""))
        )
    print(f"state saved with every batch:   {often:7.0f} ms a batch")
    print(f"state saved every 10 batches:   {seldom:7.0f} ms a batch")
    print(f"saving with every batch against the chosen interval: {often / seldom:.2f} times")


def _measured(base: Path, save: str) -> float:
    """The mean time of a batch, without those that the keys came in."""
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
            _until(lambda: len(_batches(base)) > BATCHES + 10)
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    return statistics.mean(one["duration_ms"] for one in _batches(base)[10 : BATCHES + 10])


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
