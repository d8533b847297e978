"""Runs a drilled pipeline: each run has its own folder, and ends or is killed at a point."""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from floodmark.checkpoint.conf_keys import SHUFFLE_PARTITIONS
from floodmark.drills.points import Point
from floodmark.engine.app.script_text import read_source
from floodmark.engine.drill.beginning import Beginning
from floodmark.engine.drill.killing.aftermath import Aftermath, judge
from floodmark.engine.drill.killing.driver import SMALL_JVM, Driver
from floodmark.engine.drill.killing.logged_batches import BatchRecord, DeltaLog, FilesLog
from floodmark.engine.drill.killing.marks import HOLD, SLOW, FunctionLog, Hold
from floodmark.engine.drill.killing.traps import (
    Trap,
    after,
    batches,
    partition_folders,
    reached,
    sink_begun,
    sink_done,
    state_reached,
    wait_for,
)
from floodmark.engine.drill.run_spec import (
    CHECKPOINT,
    ERROR,
    FACTS,
    HELD,
    MARKS,
    ROWS,
    SENT,
    STARTED,
    RunSpec,
    SinkNote,
    read_notes,
)
from floodmark.engine.drill.samples.input_sample import InputSample
from floodmark.engine.drill.samples.line_server import LineServer
from floodmark.engine.pipelines.application import split_target
from floodmark.engine.pipelines.declarative import split_spec
from floodmark.engine.spark.session import spark_version
from floodmark.errors import FloodmarkError, NoAnswer, StoppedMidway, WrongUse
from floodmark.storage.pipeline_spec import is_pipeline_spec

ENDS_WITHIN = 1800.0
_SLOW_MS = 25
_SLOW_SECONDS = 4.0
"""The most seconds that slowed rows add to a batch."""
_PARTITIONS = int(SMALL_JVM[SHUFFLE_PARTITIONS])
_SOCKET = re.compile(r"""["']socket["']""")
_SHARES = (0.5, 0.25, 0.75)
"""Shares of a function's time after which it is killed, one for each try."""


@dataclass(frozen=True)
class QueryFacts:
    """Facts about the query that a finished run has written down."""

    sink: str
    output_mode: str
    sources: tuple[str, ...]
    beginning: Beginning
    rows: int
    late: int
    """Rows that came after the watermark, and were dropped."""
    wrote: bool
    """Whether a sink holds anything that it did not hold when the run began."""
    seconds: float
    batches: int
    is_stateful: bool
    notes: tuple[SinkNote, ...]
    refused: tuple[str, ...]
    """Effects of the query's functions that the drill refused."""


class Run:
    """One checkpoint and one set of sinks, from the first start to the last."""

    def __init__(self, spec: RunSpec) -> None:
        self.folder = Path(spec.folder)
        (self.folder / MARKS).mkdir(parents=True)
        self._servers: list[LineServer] = []
        if _SOCKET.search(application_text(spec.target)):
            spec = replace(spec, inputs=tuple(self._served(one) for one in spec.inputs))
        self.spec = spec
        spec.write()

    def _served(self, given: InputSample) -> InputSample:
        if given.kind != "portions":
            return given
        server = LineServer(Path(given.place), self.folder / MARKS / SENT)
        self._servers.append(server)
        return replace(given, port=server.port)

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *_: object) -> None:
        for server in self._servers:
            server.close()

    @property
    def checkpoint(self) -> Path:
        return self.folder / CHECKPOINT

    def to_the_end(self) -> None:
        """Start the driver and let it read all input."""
        with self._driver({}) as driver:
            try:
                status = driver.wait(ENDS_WITHIN)
            except subprocess.TimeoutExpired:
                raise _too_long() from None
            if status != 0:
                raise self._error(status, driver)

    def facts(self) -> QueryFacts:
        told = _facts(self.folder)
        beginning = Beginning(**told["beginning"])
        return QueryFacts(
            told["sink"],
            told["output_mode"],
            tuple(told["sources"]),
            beginning,
            int(told.get("rows", 0)),
            int(told.get("late", 0)),
            bool(told.get("wrote", True)),
            float(told.get("seconds", 0)),
            sum(one >= beginning.first for one in batches(self.checkpoint / "commits")),
            (self.checkpoint / "state" / "0").is_dir(),
            read_notes(self.folder),
            tuple(told.get("refused", ())),
        )

    def rows(self) -> dict[str, list[dict[str, Any]]]:
        """Return what each sink holds, by the pipeline's own name for its place."""
        return {
            note.real: _read_rows(self.folder / ROWS / Path(note.place).name)
            for note in read_notes(self.folder)
        }

    def forget_checkpoint(self) -> None:
        """Move the checkpoint away, so that the next start makes a new one; the sinks stay."""
        aside = self.folder / f"old-{CHECKPOINT}"
        self.checkpoint.rename(aside)

    def kill(self, killing: Killing) -> Aftermath | None:
        """Kill the driver; return None where it ended before."""
        with self._driver(killing.environment) as driver:
            try:
                sprung = wait_for(killing.trap(self.folder), driver, ENDS_WITHIN)
            except TimeoutError:
                raise _too_long() from None
            if not sprung:
                if driver.status != 0:
                    raise self._error(driver.status or 0, driver)
                return None
            driver.kill()
            partitions = max(_PARTITIONS, sum(1 for _ in partition_folders(self.checkpoint)))
            return judge(self.checkpoint, killing.log(self.folder), partitions, driver.began)

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
                f"Its log ends with:\n{driver.last_words()}",
            )
        error = json.loads(told.read_text())
        told.unlink()
        kind = WrongUse if error["status"] == WrongUse.status else NoAnswer
        return kind(error["what"], error["why"], error["do"])


def _too_long() -> StoppedMidway:
    return StoppedMidway(
        f"a run of the drill has not ended within {ENDS_WITHIN / 60:.0f} minutes",
        do="Give a smaller sample: a few rows are enough.",
    )


@dataclass(frozen=True)
class Killing:
    """Says where the driver of a run is killed, and how that moment is seen."""

    point: Point | None
    """The point of the batch; None: any time."""
    batch: int
    slow_ms: int = _SLOW_MS
    """Milliseconds by which each row is slowed, to hit a point between rows."""
    writes: int = 1
    """During the sink: the function's writes before the kill; 0: wait some time instead."""
    seconds: float = 0.0
    """Seconds after the call of the function; for any time, seconds after the query's start."""

    @property
    def environment(self) -> dict[str, str]:
        found = {}
        if self.point in (None, Point.AFTER_OFFSET, Point.DURING_STATE, Point.DURING_SINK):
            found[SLOW] = str(self.slow_ms)
        if self._is_held:
            assert self.point is not None
            found[HOLD] = Hold(self.point, self.batch, self.writes).text()
        return found

    @property
    def _is_held(self) -> bool:
        """Whether the driver can wait at the point: a function can, Spark's own sinks cannot."""
        return self.point in (Point.AFTER_OFFSET, Point.AFTER_SINK) or (
            self.point is Point.DURING_SINK and self.writes > 0
        )

    def log(self, folder: Path) -> BatchRecord:
        return FunctionLog(folder) if _is_function(folder) else _spark_log(read_notes(folder))

    def trap(self, folder: Path) -> Trap:
        """Return a trap that is set when the query is built, as its sink is known only then."""
        (folder / MARKS).mkdir(exist_ok=True)
        (folder / MARKS / HELD).unlink(missing_ok=True)
        (folder / FACTS).unlink(missing_ok=True)
        early = self._at_once(folder)
        seen: list[Trap] = []

        def sprung() -> bool:
            if early is not None:
                return early()
            if not seen:
                if (folder / FACTS).exists():
                    seen.append(self._by_sink(folder))
                return False
            return seen[0]()

        return sprung

    def _at_once(self, folder: Path) -> Trap | None:
        checkpoint, started = folder / CHECKPOINT, folder / MARKS / STARTED
        if self.point is None:
            return after(started, self.seconds)
        if self.point is Point.DURING_STATE:
            return state_reached(checkpoint, self.batch + 1)
        if self.point is Point.AFTER_COMMIT:
            return reached(checkpoint / "commits", self.batch, started)
        return None

    def _by_sink(self, folder: Path) -> Trap:
        if _is_function(folder):
            if self._is_held:
                return (folder / MARKS / HELD).exists
            return after(folder / MARKS / f"begun-{self.batch}", self.seconds)
        if self.point is Point.AFTER_OFFSET:
            offsets = folder / CHECKPOINT / "offsets"
            return lambda: self.batch in batches(offsets)
        log, nth = _spark_log(read_notes(folder)), 1
        first = _facts(folder)["beginning"]["first"]
        if not any(one >= first for one in batches(folder / CHECKPOINT / "commits")):
            nth = self.batch - first + 1
        return sink_begun(log, nth) if self.point is Point.DURING_SINK else sink_done(log, nth)


def _is_function(folder: Path) -> bool:
    return bool(_facts(folder)["sink"] == "foreachBatch")


def _facts(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / FACTS).read_text())
    return found


def killing(
    point: Point | None,
    facts: QueryFacts,
    undisturbed: Path,
    chance: random.Random,
    turn: int,
) -> Killing:
    """Choose a kill from the undisturbed run: how long its batches took and how they wrote."""
    batch = facts.beginning.first + min(1, facts.batches - 1)
    rows = max(facts.rows / max(facts.batches, 1), 1.0)
    slow_ms = max(0, min(_SLOW_MS, round(_SLOW_SECONDS * 1000 / rows)))
    writes, seconds = FunctionLog(undisturbed).told(batch)
    if point is None:
        return Killing(None, batch, slow_ms, seconds=chance.uniform(0, max(facts.seconds, 1.0)))
    if point is Point.DURING_SINK and writes > 1:
        return Killing(point, batch, slow_ms, max(1, writes // 2))
    slowed = seconds + slow_ms * rows / 1000 / _PARTITIONS
    share = _SHARES[turn % len(_SHARES)]
    return Killing(point, batch, slow_ms, 0, slowed * share)


def _spark_log(notes: tuple[SinkNote, ...]) -> DeltaLog | FilesLog:
    note = notes[0]
    return DeltaLog(Path(note.place)) if note.kind == "delta" else FilesLog(Path(note.place))


def _read_rows(path: Path) -> list[dict[str, Any]]:
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def application_text(target: str) -> str:
    """Return the code that is drilled; refuse a target that is not an application."""
    if is_pipeline_spec(split_spec(target)[0]):
        raise WrongUse(
            f"{target} is the specification of a declarative pipeline, which cannot be drilled",
            "Spark itself starts its flows and writes its tables.",
            "Give a script or a file with @pipeline functions.",
        )
    return read_source(split_target(target)[0]).text


def another(spec: RunSpec, name: str, database: str | None = None) -> Run:
    """Return a new run of the same pipeline with the same sample."""
    runs = Path(spec.folder).parent
    folder = runs / f"{sum(1 for _ in runs.iterdir())}-{name}"
    return Run(replace(spec, folder=str(folder), database=database))
