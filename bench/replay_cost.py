"""What `floodmark replay` of one batch costs beside a plain session that runs the same batch.

    python bench/replay_cost.py [--rounds 5]

The other side is a plain Python process that starts Spark with the same script on a copy of the
checkpoint in which that batch is not committed: Spark runs it again and ends. `replay` runs it on
a fork, keeps its rows, and compares the state with the checkpoint's, key by key. They take turns.
Then a fork on the checkpoint's own disk is watched: state files in it must be links.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from measure import FLOODMARK, Claims, command_seconds

ROUNDS = 5
BATCHES, ROWS, KEYS = 3, 100_000, 50_000
SCRIPT = """
import sys
from pyspark.sql import SparkSession, functions as F

spark = (SparkSession.builder.master("local[2]").appName("orders")
    .config("spark.ui.enabled", "false").config("spark.driver.host", "127.0.0.1")
    .config("spark.sql.shuffle.partitions", "4").getOrCreate())
orders = (spark.readStream.schema("customer STRING, amount BIGINT")
    .option("maxFilesPerTrigger", 1).json("INPUT"))
totals = orders.groupBy("customer").agg(F.sum("amount").alias("total"), F.count("*").alias("n"))
(totals.writeStream.outputMode("update").format("noop")
    .option("checkpointLocation", sys.argv[1]).trigger(availableNow=True).start()
    .awaitTermination())
"""


def copied_state(whole: Path, replay: list[str], scratch: Path, last: int) -> tuple[int, int]:
    """State files that the fork has linked, and bytes of those that it has copied."""
    linked: set[str] = set()
    copied: dict[str, int] = {}
    command = [*replay[:-2], "--scratch", str(scratch), *replay[-2:]]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    while process.poll() is None:
        with contextlib.suppress(FileNotFoundError):  # the fork is gone at the end
            for path in scratch.glob("**/fork/state/*/*/*.*"):
                own = whole / path.relative_to(path.parents[3])
                version = path.name.partition(".")[0]
                # The replayed batch writes a version of its own, which is no copy.
                if version.isdecimal() and int(version) <= last and own.exists():
                    if path.samefile(own):
                        linked.add(str(path))
                    else:
                        copied[str(path)] = path.stat().st_size
        time.sleep(0.02)
    assert process.returncode == 0, "the replay works"
    return len(linked), sum(copied.values())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    rounds = parser.parse_args().rounds
    claims = Claims()
    with tempfile.TemporaryDirectory() as made:
        place = Path(made)
        (place / "input").mkdir()
        for batch in range(BATCHES):
            rows = (
                json.dumps({"customer": f"c{(batch * 7919 + row) % KEYS}", "amount": row})
                for row in range(ROWS)
            )
            (place / "input" / f"{batch}.json").write_text("\n".join(rows))
        script = place / "orders.py"
        script.write_text(SCRIPT.replace("INPUT", str(place / "input")))
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        run = [sys.executable, str(script)]
        whole = place / "ck"
        subprocess.run([*run, str(whole)], check=True, capture_output=True)
        last = BATCHES - 1
        replay = [FLOODMARK, "replay", str(whole), "--batch", str(last), "--app", str(script)]
        replay += ["--json", "--", str(whole)]
        ratios = []
        for number in range(rounds):
            copy = place / f"copy-{number}"
            shutil.copytree(whole, copy)
            for name in (f"commits/{last}", f"commits/.{last}.crc"):
                (copy / name).unlink()
            plain = command_seconds([*run, str(copy)])
            assert (copy / "commits" / str(last)).exists(), "the batch was run"
            again = command_seconds(replay)
            ratios.append(again / plain)
            print(
                f"  plain session {plain:.2f} s, replay {again:.2f} s: {again / plain:.2f}",
                flush=True,
            )
        linked, copied = copied_state(whole, replay, place / "scratch", last)
        print(f"  fork on the same disk: {linked} state files linked, {copied} bytes copied")
        assert linked, "the fork was seen"
    claims.at_most("bytes of state that a fork copies on one disk", copied, 0)
    claims.at_most("replay of a batch against a plain session", statistics.median(ratios), 1.5)
    claims.finish()


if __name__ == "__main__":
    main()
