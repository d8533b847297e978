"""A drilled pipeline's runs: each in a folder of its own, killed at a point or left to its end."""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from floodmark.drills.points import Point
from floodmark.engine.drill.aftermath import Aftermath, judge
from floodmark.engine.drill.driver import SMALL_JVM, Driver
from floodmark.engine.drill.marks import HOLD, SLOW, FunctionLog, Hold
from floodmark.engine.drill.run_spec import (
    CHECKPOINT,
    ERROR,
    FACTS,
    MARKS,
    ROWS,
    RunSpec,
    SinkNote,
    read_notes,
)
from floodmark.engine.drill.sink_logs import DeltaLog, FilesLog, SinkLog
from floodmark.engine.drill.traps import (
    Trap,
    after,
    batches,
    logged,
    sink_begun,
    sink_done,
    state_begun,
    wait_for,
)
from floodmark.engine.spark.session import spark_version
from floodmark.errors import FloodmarkError, NoAnswer, StoppedMidway, WrongUse

ENDS_WITHIN = 1800.0
_SLOW_MS = 25
_SLOW_SECONDS = 4.0
"""How much longer slowed rows make a batch, at most."""
_PARTITIONS = int(SMALL_JVM["spark.sql.shuffle.partitions"])
_SHARES = (0.5, 0.25, 0.75)
"""Of a function's time: when it is killed, try by try."""


@dataclass(frozen=True)
class Facts:
    """What a run that came to its end tells of the query."""

    sink: str
    output_mode: str
    sources: tuple[str, ...]
    checkpoint: str | None
    rows: int
    seconds: float
    batches: int
    is_stateful: bool
    notes: tuple[SinkNote, ...]


class Run:
    """One checkpoint and one set of sinks, from the first start to the last."""

    def __init__(self, spec: RunSpec) -> None:
        self.folder = Path(spec.folder)
        self.folder.mkdir(parents=True)
        self.spec = spec
        spec.write()

    @property
    def checkpoint(self) -> Path:
        return self.folder / CHECKPOINT

    def to_the_end(self) -> None:
        """Starts the driver and lets it read all that is there."""
        with self._driver({}) as driver:
            status = driver.wait(ENDS_WITHIN)
            if status != 0:
                raise self._error(status, driver)

    def facts(self) -> Facts:
        told = json.loads((self.folder / FACTS).read_text())
        return Facts(
            told["sink"],
            told["output_mode"],
            tuple(told["sources"]),
            told["checkpoint"],
            int(told.get("rows", 0)),
            float(told.get("seconds", 0)),
            len(batches(self.checkpoint / "commits")),
            (self.checkpoint / "state" / "0").is_dir(),
            read_notes(self.folder),
        )

    def rows(self) -> dict[str, list[dict[str, Any]]]:
        """What each sink holds, by its place as the pipeline names it."""
        return {
            note.real: _read_rows(self.folder / ROWS / Path(note.place).name)
            for note in read_notes(self.folder)
        }

    def forget_checkpoint(self) -> None:
        """The next start begins with a new one; the sinks stay."""
        aside = self.folder / f"old-{CHECKPOINT}"
        self.checkpoint.rename(aside)

    def kill(self, killing: Killing) -> Aftermath | None:
        """None where the driver came to its end before it was killed."""
        with self._driver(killing.environment) as driver:
            if not wait_for(killing.trap(self.folder), driver):
                if driver.status != 0:
                    raise self._error(driver.status or 0, driver)
                return None
            driver.kill()
            return judge(self.checkpoint, killing.log(self.folder), _PARTITIONS, driver.began)

    def _driver(self, environment: Mapping[str, str]) -> Driver:
        spark_version()
        command = [sys.executable, "-m", "floodmark.engine.drill.child"]
        return Driver(
            [*command, str(self.folder / "spec.json")],
            self.folder / "driver.log",
            environment=environment,
        )

    def _error(self, status: int, driver: Driver) -> FloodmarkError:
        told = self.folder / ERROR
        if not told.exists():
            return StoppedMidway(
                f"the driver of a run ended with status {status}",
                driver.last_words(),
                "Give --scratch DIR, and look at driver.log and spark.log below DIR.",
            )
        error = json.loads(told.read_text())
        told.unlink()
        kind = WrongUse if error["status"] == WrongUse.status else NoAnswer
        return kind(error["what"], error["why"], error["do"])


@dataclass(frozen=True)
class Killing:
    """Where the driver of a run is killed, and how that is seen."""

    point: Point | None
    """None: at any time."""
    batch: int
    facts: Facts
    undisturbed: Path
    chance: random.Random
    turn: int = 0
    """Which try this is."""

    @property
    def _by_function(self) -> bool:
        return self.facts.sink == "foreachBatch"

    @property
    def environment(self) -> dict[str, str]:
        found = {}
        if self.point in (None, Point.AFTER_OFFSET, Point.DURING_STATE, Point.DURING_SINK):
            found[SLOW] = str(self._slow_ms)
        hold = self._hold
        if hold is not None:
            found[HOLD] = hold.text()
        return found

    @property
    def _rows_per_batch(self) -> float:
        return max(self.facts.rows / max(self.facts.batches, 1), 1.0)

    @property
    def _slow_ms(self) -> int:
        return max(0, min(_SLOW_MS, round(_SLOW_SECONDS * 1000 / self._rows_per_batch)))

    @property
    def _hold(self) -> Hold | None:
        """A function can be held; Spark's own sinks cannot."""
        if not self._by_function:
            return None
        if self.point in (Point.AFTER_OFFSET, Point.AFTER_SINK):
            return Hold(self.point, self.batch)
        writes, _ = FunctionLog(self.undisturbed).told(self.batch)
        if self.point is Point.DURING_SINK and writes > 1:
            return Hold(self.point, self.batch, max(1, writes // 2))
        return None

    def log(self, folder: Path) -> SinkLog:
        if self._by_function:
            return FunctionLog(folder)
        return _spark_log(read_notes(folder))

    def trap(self, folder: Path) -> Trap:
        checkpoint, marks, nth = folder / CHECKPOINT, folder / MARKS, self.batch + 1
        marks.mkdir(exist_ok=True)
        if self.point is None:
            return after(marks / "started", self.chance.uniform(0, max(self.facts.seconds, 1.0)))
        if self._hold is not None:
            return (marks / "held").exists
        if self.point is Point.DURING_STATE:
            return state_begun(checkpoint, nth)
        if self.point is Point.DURING_SINK and self._by_function:
            _, seconds = FunctionLog(self.undisturbed).told(self.batch)
            slowed = seconds + self._slow_ms * self._rows_per_batch / 1000 / _PARTITIONS
            return after(marks / f"begun-{self.batch}", slowed * _SHARES[self.turn % len(_SHARES)])
        if self.point in (Point.DURING_SINK, Point.AFTER_SINK):
            return self._spark_sink(folder, nth)
        entries = "offsets" if self.point is Point.AFTER_OFFSET else "commits"
        return logged(checkpoint / entries, nth)

    def _spark_sink(self, folder: Path, nth: int) -> Trap:
        """The sink's place is known as soon as the query is built."""
        seen: list[Trap] = []

        def sprung() -> bool:
            if not seen:
                notes = read_notes(folder)
                if notes:
                    log = _spark_log(notes)
                    during = self.point is Point.DURING_SINK
                    seen.append(sink_begun(log, nth) if during else sink_done(log, nth))
                return False
            return seen[0]()

        return sprung


def _spark_log(notes: tuple[SinkNote, ...]) -> DeltaLog | FilesLog:
    note = notes[0]
    return DeltaLog(Path(note.place)) if note.kind == "delta" else FilesLog(Path(note.place))


def _read_rows(path: Path) -> list[dict[str, Any]]:
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def another(spec: RunSpec, name: str, database: str | None = None) -> Run:
    """A new run of the same pipeline over the same sample."""
    folder = Path(spec.folder).parent / name
    return Run(replace(spec, folder=str(folder), database=database))
