"""A stream of orders whose checkpoint Spark writes to S3, and `floodmark` as commands on it.

A batch query over all input says what the stream must have.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from project_scripts import script

if TYPE_CHECKING:
    from services.s3 import S3Server

_SUMMED = script("summed_orders")
TOTAL, COUNTED, application = _SUMMED.TOTAL, _SUMMED.COUNTED, _SUMMED.application


def feed(folder: Path, *numbers: int) -> None:
    folder.mkdir(exist_ok=True)
    for number in numbers:
        line = f'{{"customer": "c{number % 3}", "paid": {number}}}\n'
        (folder / f"{number}.json").write_text(line)


def oracle(orders: Path) -> dict[str, int]:
    found: dict[str, int] = {}
    for file in orders.glob("*.json"):
        row = json.loads(file.read_text())
        found[row["customer"]] = found.get(row["customer"], 0) + row["paid"]
    return found


def written(sink: Path) -> dict[str, int]:
    lines = [line for file in sink.glob("*.json") for line in file.read_text().splitlines()]
    return {row["customer"]: row["total"] for row in map(json.loads, lines)}


class Commands:
    """`floodmark` on a stream whose checkpoints lie on S3."""

    def __init__(self, s3: S3Server, folder: Path, conf: Mapping[str, str] | None = None) -> None:
        self.s3, self.folder = s3, folder
        self.place = s3.place("commands")
        self.orders, self.sink = folder / "orders", folder / "sink"
        self.environment: dict[str, str] = {}
        """Of the commands, beside that of the tests."""
        pairs = (conf or s3.spark_conf).items()
        self.conf = [part for pair in pairs for part in ("--conf", "=".join(pair))]
        self.conf += ["--master", "local[2]"]
        told = {**s3.storage_options, "client_kwargs": '{"region_name": "us-east-1"}'}
        self.storage = [part for pair in told.items() for part in ("--storage", "=".join(pair))]

    def write(self, name: str, sums: str) -> str:
        path = self.folder / name
        path.write_text(application(sums))
        return str(path)

    def checkpoint(self, name: str) -> str:
        return f"{self.place}/{name}/checkpoint"

    def settings(self, name: str) -> list[str]:
        root = f"{self.place}/{name}".replace("s3://", "s3a://")
        given = {"root": root, "orders": self.orders, "sink": self.sink}
        return [part for key, value in given.items() for part in ("--set", f"{key}={value}")]

    def run(self, *arguments: str) -> tuple[str, str]:
        done = self._done(arguments)
        assert done.returncode == 0, f"{arguments}\n{done.stdout}\n{done.stderr}"
        return done.stdout, done.stderr

    def _done(self, arguments: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
        command = [str(Path(sys.executable).with_name("floodmark")), *arguments]
        environment = {**os.environ, **self.environment}
        return subprocess.run(
            command, capture_output=True, text=True, timeout=400, check=False, env=environment
        )

    def tried(self, app: str, name: str, partitions: int = 2) -> tuple[int, str]:
        """The exit status of a run over what there is, and what it said."""
        shuffled = ("--conf", f"spark.sql.shuffle.partitions={partitions}")
        settings = [*self.settings(name), *self.conf, *shuffled]
        done = self._done(("run", app, "--available-now", *settings))
        return done.returncode, done.stdout + done.stderr

    def stream(self, app: str, name: str, partitions: int = 2) -> str:
        """Runs what there is, and the sink then has what a batch query over all of it gives."""
        status, said = self.tried(app, name, partitions)
        assert status == 0, said
        assert written(self.sink) == oracle(self.orders), said
        return said
