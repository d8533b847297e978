"""Streams that are stopped half way, so that their state can be written anew and go on.

A query of `spark_states` runs over the first half of an input; what it does with the
second half, on its own checkpoint and on one that floodmark has made, is written down row
by row. Run as a script it does so with the Spark of whatever Python runs it:

    restated.py first ROOT NAME…       the first half of each
    restated.py second ROOT JOBS.json  the second half of [{name, checkpoint, out, conf}]
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from spark_states import STATES, session_conf, start_session

NAMES = 60
A_FILE = 90
FIRST_FILES = 2
MINUTES = 25


def write_input(folder: Path, number: int) -> None:
    """Keys come back in other files; time goes on, so that watermarks let rows go."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = []
    for at in range(A_FILE):
        name = f"name {(at * 7 + number * 13) % (NAMES - 15 + 5 * number)}"
        minute = number * MINUTES + at // 6
        event = {
            "id": number * 1000 + at,
            "name": None if at == 50 else name,
            "amount": f"{at}.125",
            "at": f"2026-01-01 {10 + minute // 60:02}:{minute % 60:02}:{at % 6 * 10:02}",
            "tags": [f"tag {at % 3}", "x"] if at % 4 else None,
        }
        lines.append(json.dumps(event))
    (folder / f"{number}.json").write_text("\n".join(lines) + "\n", encoding="utf-8")


def run(
    spark: Any,
    name: str,
    source: Path,
    checkpoint: Path,
    out: Path,
    conf: Mapping[str, str] | None = None,
    has: int | None = None,
    **trigger: bool,
) -> None:
    """All that is there now, as one batch; a sink that has batch `has` asks for none of it."""
    build, mode, own, _ = STATES[name]
    out.mkdir(parents=True, exist_ok=True)

    def keep(frame: Any, batch: int) -> None:
        if batch != has:
            rows = sorted(str(row.asDict(recursive=True)) for row in frame.collect())
            (out / f"{batch}.json").write_text(json.dumps(rows), encoding="utf-8")

    with session_conf(spark, {**own, **(conf or {})}):
        query = (
            build(spark, source)
            .writeStream.foreachBatch(keep)
            .outputMode(mode)
            .option("checkpointLocation", str(checkpoint))
            .trigger(**(trigger or {"once": True}))
            .start()
        )
        query.awaitTermination()


def run_first_half(spark: Any, root: Path, name: str) -> None:
    source = root / "input" / name
    for number in range(FIRST_FILES):
        write_input(source, number)
        run(spark, name, source, root / name, root / "out" / name / "first")


def second_input(root: Path, name: str) -> Path:
    """The whole input: what the checkpoint has seen is not read again."""
    source = root / "input" / name
    write_input(source, FIRST_FILES)
    return source


def kept(out: Path) -> dict[str, list[str]]:
    return {path.name: json.loads(path.read_text()) for path in sorted(out.glob("*.json"))}


def main(arguments: list[str]) -> int:
    phase, root, *rest = arguments
    spark = start_session()
    spark.sparkContext.setLogLevel("OFF")
    failed = 0
    jobs = json.loads(Path(rest[0]).read_text()) if phase == "second" else rest
    for job in jobs:
        try:
            if phase == "first":
                run_first_half(spark, Path(root), job)
            else:
                source = second_input(Path(root), job["name"])
                run(
                    spark,
                    job["name"],
                    source,
                    Path(job["checkpoint"]),
                    Path(job["out"]),
                    job.get("conf"),
                )
            print("done", job, flush=True)
        except Exception as error:
            failed += 1
            print("FAILED", job, str(error)[:1500], flush=True)
    spark.stop()
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
