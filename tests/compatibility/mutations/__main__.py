"""python -m compatibility.mutations: the campaign, or single mutations by name, in one process."""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from compatibility.mutations.campaign import selected, try_one
from compatibility.mutations.machine import Machine
from compatibility.mutations.mutators import Mutation, mutations
from compatibility.mutations.table import block, load, put_into


def main() -> int:
    options = _options()
    if options.table:
        put_into(options.table, block(load([options.results])))
        return 0
    chosen = _chosen(options)
    if options.list:
        for one in chosen:
            print(one.name, "harmless" if one.harmless else "", one.what, sep="\t")
        return 0
    known = _known(options.results)
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="mutations-") as folder:
        spark = _session(Path(folder))
        machine = Machine(Path(folder))
        for one in chosen:
            if one.name in known:
                continue
            begun = time.monotonic()
            result = try_one(machine, one, every=options.every, migrate=options.migrate)
            counts[result.outcome] += 1
            counts["all"] += result.counts
            seconds = round(time.monotonic() - begun, 1)
            if options.results:
                with options.results.open("a") as file:
                    file.write(json.dumps({**result.as_json, "seconds": seconds}) + "\n")
            print(seconds, result.outcome, result.verdict, one.name, one.what, sep="\t", flush=True)
            if options.show:
                print(machine.application(one).read_text())
                print(json.dumps(result.as_json, indent=1))
        spark.stop()
    print(dict(counts))
    return 1 if counts["wrong"] else 0


def _options() -> Any:
    parser = argparse.ArgumentParser(prog="python -m compatibility.mutations")
    parser.add_argument("--only", action="append", default=[], help="the name of a mutation")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--number", type=int, default=600)
    parser.add_argument("--part", default="1/1", help="2/3: the second third")
    parser.add_argument("--results", type=Path, help="JSON lines; what is in it is not run again")
    parser.add_argument(
        "--migrate", action="store_true", help="lets migrate try what check refuses"
    )
    parser.add_argument("--every", action="store_true", help="runs what check refuses, too")
    parser.add_argument("--table", type=Path, help="puts the results into this page, runs nothing")
    parser.add_argument("--show", action="store_true", help="prints the code and the rows")
    parser.add_argument("--list", action="store_true", help="names only")
    return parser.parse_args()


def _chosen(options: Any) -> list[Mutation]:
    if options.only:
        return [
            one
            for one in mutations()
            if any(one.name == name or one.name.startswith(f"{name}-") for name in options.only)
        ]
    return selected(options.seed, options.number, options.part)


def _known(results: Path | None) -> set[str]:
    if results is None or not results.exists():
        return set()
    return {json.loads(line)["name"] for line in results.read_text().splitlines()}


def _session(folder: Path) -> Any:
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    conf = {
        "spark.master": "local[1]",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "2g",
        # Six rows do not pay for a second compiler.
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.local.dir": str(folder / "local"),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.log.level": "OFF",
    }
    logging.disable(logging.ERROR)  # PySpark logs every query that Spark does not take
    builder = SparkSession.builder
    for key, value in conf.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


if __name__ == "__main__":
    sys.exit(main())
