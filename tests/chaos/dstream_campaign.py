"""Kills a DStreams application at random moments of its batches, and compares with a plain sum.

Files come all the time: while it runs, while it starts, while it is dead. A kill comes after the
first batch of a start is done, so that it hits batches and not the start. After the last kill it
runs to the end, and each customer's total has to be what the files say.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import floodmark
from floodmark.checkpoint.dstreams.folder import DStreamsCheckpoint
from floodmark.storage.machine.process import kill_family

APP = """
import json, os
from floodmark import dstream

def update(paid, total):
    return round(sum(paid) + (total or 0.0), 2)

def show(time, totals):
    found = dict(totals.collect())
    with open("{root}/put_out", "a") as out:
        out.write(f"{{round(time.timestamp() * 1000)}} {{sum(found.values()):.2f}}\\n")
    with open("{root}/totals.tmp", "w") as out:
        json.dump(found, out)
    os.replace("{root}/totals.tmp", "{root}/totals.json")

@dstream(checkpoint="{root}/cp", batch="{batch}ms", save_state="{state}ms")
def sales(ssc):
    rows = ssc.textFileStream("{root}/in").map(lambda line: line.split(","))
    paid = rows.map(lambda row: (row[1], float(row[3])))
    paid.updateStateByKey(update, 2).foreachRDD(show)
"""


class Campaign:
    def __init__(self, root: Path, seed: int, batch_ms: int = 1000) -> None:
        self.root = root
        self.chance = random.Random(seed)
        self.oracle: dict[str, float] = {}
        self.files = 0
        self.lived: list[float] = []
        self.hit: Counter[str] = Counter()
        (root / "in").mkdir(parents=True)
        self.app = root / "sales.py"
        self.app.write_text(APP.format(root=root, batch=batch_ms, state=2 * batch_ms))

    def put(self) -> None:
        """One more file, with a few orders."""
        rows = []
        for order in range(self.chance.randint(1, 4)):
            customer = f"c{self.chance.randint(1, 6)}"
            amount = round(self.chance.uniform(1, 50), 2)
            rows.append(f"t{self.files}-{order},{customer},i1,{amount}\n")
            self.oracle[customer] = round(self.oracle.get(customer, 0.0) + amount, 2)
        beside = self.root / f".{self.files}"
        beside.write_text("".join(rows))
        os.utime(beside)
        beside.rename(self.root / "in" / f"{self.files:05}.csv")
        self.files += 1

    def start(self) -> subprocess.Popen[bytes]:
        log = (self.root / "run.log").open("ab")
        code = "from floodmark.cli.main import main; main()"
        return subprocess.Popen(
            [sys.executable, "-c", code, "run", str(self.app), "--conf", "spark.ui.enabled=false"],
            stdout=log,
            stderr=log,
            start_new_session=True,
        )

    def kill(self, process: subprocess.Popen[bytes]) -> None:
        """The driver, its JVM and its workers, at once."""
        kill_family(process.pid)
        process.wait(30)

    def batches(self) -> int:
        lines = self.root / "cp" / "_floodmark" / "progress.jsonl"
        return len(lines.read_bytes().splitlines()) if lines.exists() else 0

    def inside(self) -> DStreamsCheckpoint:
        found = floodmark.inspect(str(self.root / "cp")).dstreams
        assert found is not None
        return found

    def put_out(self) -> list[int]:
        """The batches whose output was written, in the order of their writing."""
        lines = self.root / "put_out"
        rows = lines.read_text().splitlines() if lines.exists() else []
        return [int(row.split()[0]) for row in rows]

    def newest(self) -> int:
        return max(int(path.name[11:24]) for path in (self.root / "cp").glob("checkpoint-*"))

    def phase(self) -> str:
        """What the kill has hit, by what it left in the folder."""
        inside = self.inside()
        assert not inside.gone_rdds, f"{inside.restart_file} names what is gone"
        if any(rdd.missing is not None or not rdd.partitions for rdd in inside.rdds) or any(
            "-attempt-" in path for path in inside.temporary
        ):
            return "while a state was saved"
        if inside.temporary:
            return "while the application was saved"
        return "in a batch" if inside.pending_times else "between two batches"

    def is_founded(self) -> bool:
        return any((self.root / "cp").glob("checkpoint-*"))

    def until(self, process: subprocess.Popen[bytes], reached: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 900
        while not reached():
            assert process.poll() is None, (self.root / "run.log").read_text()[-3000:]
            assert time.monotonic() < deadline, "this start did not get there"
            if self.is_founded():
                self._feed(0.2)
            time.sleep(0.05)

    def until_batches(self, process: subprocess.Popen[bytes], number: int) -> None:
        self.until(process, lambda: self.batches() >= number)

    def run(self, kills: int) -> None:
        process = self.start()
        done = 0
        try:
            for _ in range(kills):
                self.until_batches(process, done + 1)
                life = self.chance.uniform(0, 5)
                self._feed(life)
                self.kill(process)
                self.lived.append(round(life, 1))
                self.hit[self.phase()] += 1
                done = self.batches()
                self._feed(self.chance.uniform(0.2, 2))
                process = self.start()
            self.finish(process)
        finally:
            if process.poll() is None:
                self.kill(process)

    def finish(self, process: subprocess.Popen[bytes]) -> None:
        """Wait until the totals are those of all files."""
        self._feed(3)

        def is_done() -> bool:
            assert process.poll() is None, (self.root / "run.log").read_text()[-3000:]
            return self.is_equal()

        wait_until(is_done, f"{self.totals()} is not {self.oracle}", 900)

    def _feed(self, seconds: float) -> None:
        ends = time.monotonic() + seconds
        while time.monotonic() < ends:
            self.put()
            time.sleep(min(self.chance.uniform(0.1, 1.0), max(ends - time.monotonic(), 0)))

    def totals(self) -> dict[str, float]:
        path = self.root / "totals.json"
        return json.loads(path.read_text()) if path.exists() else {}

    def is_equal(self) -> bool:
        found = self.totals()
        return found.keys() == self.oracle.keys() and all(
            abs(found[customer] - total) < 0.02 for customer, total in self.oracle.items()
        )


def wait_until(reached: Callable[[], bool], what: str, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not reached():
        assert time.monotonic() < deadline, what
        time.sleep(0.2)
