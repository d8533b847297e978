"""What floodmark does with the Spark of this Python: `python scripts/matrix_trial.py FOLDER MODE`.

MODE `all` makes checkpoints in FOLDER and tries every verb on them; `carry` goes on from copies of
those that another Spark has left there. A plain sum over the input says what the sink must hold.
What was found is one JSON line, `stream → step → yes`, or why not.
"""

from __future__ import annotations

import json
import shutil
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyspark

import floodmark
from floodmark.changes.apply import Carrying
from floodmark.changes.in_use import Clock

sys.path.insert(0, str(Path(__file__).parent))

from summed_orders import COUNTED, CUSTOMER, IN_WINDOWS, TOTAL, application

_STATE = "org.apache.spark.sql.execution.streaming.state."
PROVIDERS = {"hdfs": "HDFSBackedStateStoreProvider", "rocksdb": "RocksDBStateStoreProvider"}
# The rows of windows are of one hour, so that the sink holds what it holds without windows.
STREAMS = {
    "hdfs": ("hdfs", CUSTOMER),
    "rocksdb": ("rocksdb", CUSTOMER),
    "windows": ("hdfs", IN_WINDOWS),
}
AT = "2024-01-01T00:30:00Z"
CARRIED = "carried"
# Nobody runs the query here: the wait that makes sure of it is no part of the trial.
GO = Carrying(execute=True, clock=Clock(pause=lambda seconds: None))


class Trial:
    """One stream in a folder of its own."""

    def __init__(self, folder: Path, stream: str) -> None:
        self.folder = folder
        self.provider, self.keys = STREAMS[stream]
        self.orders, self.sink = folder / "orders", folder / "sink"
        self._began = folder / "spark-version"
        self.orders.mkdir(parents=True, exist_ok=True)
        self.first, self.second = self._code("first", TOTAL), self._code("second", COUNTED)

    def _code(self, name: str, sums: str) -> str:
        path = self.folder / f"{name}.py"
        path.write_text(application(sums, self.keys))
        return str(path)

    def feed(self, *numbers: int) -> None:
        for number in numbers:
            line = json.dumps({"at": AT, "customer": f"c{number % 3}", "paid": number})
            (self.orders / f"{number}.json").write_text(line + "\n")

    def checkpoint(self, root: str) -> str:
        return str(self.folder / root / "checkpoint")

    def settings(self, root: str) -> dict[str, str]:
        given = {"root": self.folder / root, "orders": self.orders, "sink": self.sink}
        return {key: str(value) for key, value in given.items()}

    def run(
        self, app: str, root: str, partitions: int = 2, kept: dict[str, str] | None = None
    ) -> None:
        """To the end of the input; what the sink holds has to be right then."""
        conf = {
            **(kept or {}),
            "spark.sql.shuffle.partitions": str(partitions),
            "spark.sql.streaming.stateStore.providerClass": _STATE + PROVIDERS[self.provider],
        }
        floodmark.run(app, available_now=True, settings=self.settings(root), conf=conf)
        files = self.sink.glob("*.json")
        rows = [json.loads(line) for file in files for line in file.read_text().splitlines()]
        _equal({row["customer"]: row["total"] for row in rows}, self.oracle())

    def oracle(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for file in self.orders.glob("*.json"):
            row = json.loads(file.read_text())
            found[row["customer"]] = found.get(row["customer"], 0) + row["paid"]
        return found

    def running(self) -> None:
        self._began.write_text(pyspark.__version__)
        self.feed(*range(1, 7))
        self.run(self.first, "a")
        self.feed(7)
        self.run(self.first, "a")
        shutil.copytree(self.folder / "a", self.folder / CARRIED)

    def reading(self) -> None:
        _equal(floodmark.inspect(self.checkpoint("a")).committed_batch, 1)
        view = floodmark.open(self.checkpoint("a")).state()
        rows = view.to_arrow().to_pylist()
        held = {row["key"]["customer"]: next(iter(row["value"].values())) for row in rows}
        _equal(held, self.oracle())

    def judging(self) -> None:
        def verdict(app: str, **more: Any) -> str:
            settings = self.settings("a")
            judged = floodmark.check(self.checkpoint("a"), app, settings=settings, **more)
            return str(judged.verdict.value)

        _equal(verdict(self.first), "same")
        _equal(verdict(self.second), "needs-migration")

    def rehearsing(self) -> None:
        judged = floodmark.check(
            self.checkpoint("a"), self.first, settings=self.settings("a"), rehearse=True
        )
        _equal((judged.verdict.is_yes, judged.decided_by), (True, "rehearsal"))

    def migrating(self) -> None:
        floodmark.migrate(
            self.checkpoint("a"),
            self.checkpoint("b"),
            app=self.second,
            settings=self.settings("b"),
            carrying=GO,
        )
        self.feed(8)
        self.run(self.second, "b")

    def repartitioning(self) -> None:
        floodmark.repartition(self.checkpoint("b"), self.checkpoint("c"), partitions=3, carrying=GO)
        self.feed(9)
        self.run(self.second, "c", 3)

    def carrying(self) -> None:
        """Under this Spark, where another one stopped."""
        place = f"{CARRIED}-{pyspark.__version__}"
        shutil.copytree(self.folder / CARRIED, self.folder / place)
        self.sink = self.folder / f"{place}-sink"
        # `run` does not judge code that has not changed, and `check` does.
        settings = self.settings(place)
        kept = self._kept()
        judged = floodmark.check(self.checkpoint(place), self.first, settings=settings, conf=kept)
        if judged.verdict.value in ("needs-migration", "needs-new-checkpoint"):
            why = next((one.what for one in judged.reasons if one.verdict is judged.verdict), "")
            raise AssertionError(f"the same code {judged.verdict.value}: {why}")
        self.feed(10)
        self.run(self.first, place, kept=kept)

    def _kept(self) -> dict[str, str]:
        """Spark 4 turns ANSI mode on: FM355 asks whoever comes from Spark 3 to choose."""
        was_on = self._began.read_text() >= "4"
        return {} if was_on or pyspark.__version__ < "4" else {"spark.sql.ansi.enabled": "false"}


STEPS = ("running", "reading", "judging", "rehearsing", "migrating", "repartitioning")


def _equal(found: object, wanted: object) -> None:
    if found != wanted:
        raise AssertionError(f"{found}, and not {wanted}")


def attempt(work: Callable[[], None]) -> str:
    try:
        work()
    except Exception as error:
        traceback.print_exc()
        return f"no: {getattr(error, 'what', None) or error}".splitlines()[0][:200]
    return "yes"


def main() -> int:
    folder, mode = Path(sys.argv[1]), sys.argv[2]
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").appName("matrix")
    for key, value in {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": f"-Dderby.system.home={folder}",
        "spark.ui.enabled": "false",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
    }.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    found: dict[str, dict[str, str]] = {}
    for stream in STREAMS:
        trial = Trial(folder / stream, stream)
        steps = STEPS if mode == "all" else (CARRIED,)
        works = {step: getattr(trial, "carrying" if step == CARRIED else step) for step in steps}
        found[stream] = {step: attempt(work) for step, work in works.items()}
    spark.stop()
    print(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
