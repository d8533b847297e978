"""A stream that is stopped, moved by a changing verb, and run on: its sink must equal the oracle.

A stream is run and stopped once for all verbs. What it left behind is kept aside, and each
verb begins from that very state: input, checkpoint and sink are put back as they were.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from carried import GO
from chaos.campaign import ENDS_WITHIN, TRIES, Campaign
from chaos.scenario import Scenario
from chaos.sinks import DeltaSink
from floodmark import api
from floodmark.drills.points import Point
from floodmark.engine.drill.killing.traps import logged, wait_for

if TYPE_CHECKING:
    from services.kafka import KafkaServer

CLEAN, KILLED = "clean", "killed"
MID_BATCH = (Point.AFTER_OFFSET, Point.DURING_SINK, Point.AFTER_SINK, Point.DURING_STATE)
STOPPED_IN = 3
"""The batch that is killed, or after which it is stopped: so that there are earlier ones."""
_KEPT = ("checkpoint", "input", "sink")


@dataclass(frozen=True)
class Stop:
    """A stream, and how it comes to its end."""

    scenario: Scenario
    how: str
    point: Point | None = None
    """Where the batch is when its driver is killed."""

    def __str__(self) -> str:
        return f"{self.scenario}-{self.how}"


def stops() -> tuple[Stop, ...]:
    """Every source, stateless and with both providers, stopped both ways.

    Shapes, sinks, RocksDB's two ways to keep changes and the points of a batch take turns.
    """
    found = []
    for turn, source in enumerate(("files", "kafka", "delta")):
        rocksdb = ("rocksdb", "rocksdb-changelog")[turn % 2]
        shapes = ("totals", "distinct")
        sinks = ("delta", "delta-batch")
        scenarios = (
            Scenario(source, "all", "none", sinks[turn % 2]),
            Scenario(source, shapes[turn % 2], "hdfs", sinks[(turn + 1) % 2]),
            Scenario(source, shapes[(turn + 1) % 2], rocksdb, sinks[turn % 2]),
        )
        for number, scenario in enumerate(scenarios):
            points = [one for one in MID_BATCH if one in scenario.points]
            found += [
                Stop(scenario, CLEAN),
                Stop(scenario, KILLED, points[(turn + number) % len(points)]),
            ]
    return tuple(found)


class Moving(Campaign):
    def __init__(self, stop: Stop, base: Path, seed: str, kafka: KafkaServer | None) -> None:
        super().__init__(stop.scenario, base, seed, kafka)
        self.stop = stop
        self._aside = base.with_name(f"{base.name}-aside")
        self.hit: Point | None = None

    def run_and_stop(self) -> None:
        if self.stop.how == CLEAN:
            self._stop_clean()
        else:
            self._kill_in_mid_batch()
        self.feed(2)
        for name in _KEPT:
            if (self._base / name).exists():
                shutil.copytree(self._base / name, self._aside / name)

    def _stop_clean(self) -> None:
        self.feed(STOPPED_IN + 1)
        with self._driver(available_now=False, environment={}) as driver:
            reached = wait_for(logged(self._checkpoint / "commits", STOPPED_IN), driver)
            assert reached, driver.last_words()
            driver.ask_to_stop()
            assert driver.wait(ENDS_WITHIN) == 0, driver.last_words()
        assert api.inspect(str(self._checkpoint)).in_flight_batch is None

    def _kill_in_mid_batch(self) -> None:
        for _ in range(TRIES):
            aftermath = self._kill_once(self.stop.point, STOPPED_IN)
            if aftermath is None:
                continue
            self.tally.hits[aftermath.point] += 1
            if aftermath.in_flight is not None and (aftermath.committed or 0) > 0:
                self.hit = aftermath.point
                return
        raise AssertionError(f"{self.stop}: no batch was killed in its middle")

    def moved_by(self, verb: str) -> None:
        """From the stopped stream by the verb to the end of all input, and to the oracle."""
        for name in _KEPT:
            shutil.rmtree(self._base / name, ignore_errors=True)
            if (self._aside / name).exists():
                shutil.copytree(self._aside / name, self._base / name)
        shutil.rmtree(self._base / "moved", ignore_errors=True)
        self._settings["place"] = VERBS[verb](self)
        with self._driver(available_now=True, environment={}) as driver:
            status = driver.wait(ENDS_WITHIN)
            assert status == 0, f"{self.stop}, {verb}: status {status}\n{driver.last_words()}"
        found = api.inspect(str(self._base / self._settings["place"]))
        assert found.in_flight_batch is None
        self.require_equal()

    def _upgrade(self) -> str:
        api.upgrade(str(self._checkpoint), str(self._base / "moved"), carrying=GO)
        return "moved"

    def _copy(self) -> str:
        api.copy(str(self._checkpoint), str(self._base / "moved"), carrying=GO)
        return "moved"

    def _rewind(self) -> str:
        """The sink's owner takes out of it what is read again, as the plan says he must."""
        standing = api.inspect(str(self._checkpoint))
        assert standing.committed_batch
        goal = standing.committed_batch - 1
        assert isinstance(self._sink, DeltaSink)
        assert standing.query_id is not None
        self._sink.take_back(standing.query_id, goal)
        api.rewind(str(self._checkpoint), to_batch=goal, carrying=GO)
        return "checkpoint"

    def _backup_and_restore(self) -> str:
        """The checkpoint is lost; it comes back where it was, or somewhere else."""
        repository = str(self._base / "moved" / "repository")
        api.backup(str(self._checkpoint), repository, carrying=GO)
        shutil.rmtree(self._checkpoint)
        goal = "checkpoint" if self.stop.how == KILLED else "moved/again"
        # Spark's own Delta sink is found by the notes, and knows that nothing ran since.
        keep = self.stop.scenario.sink != "delta"
        api.restore(repository, str(self._base / goal), keep_identity=keep, carrying=GO)
        return goal


VERBS: dict[str, Callable[[Moving], str]] = {
    "upgrade": Moving._upgrade,
    "rewind": Moving._rewind,
    "copy": Moving._copy,
    "backup-restore": Moving._backup_and_restore,
}
