"""One scenario's campaign: feed, run, kill, judge, run again; at the end, ask the oracle."""

from __future__ import annotations

import json
import random
import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from chaos.driver import Driver
from chaos.inputs import (
    ROWS,
    DeltaInput,
    Event,
    Events,
    FileInput,
    Input,
    KafkaInput,
    distinct,
    totals,
)
from chaos.scenario import Scenario
from chaos.sinks import DeltaSink, FilesSink, PostgresSink, Row, Sink
from chaos.trap import trap_for
from floodmark import api
from floodmark.drills.points import Point
from floodmark.engine.drill.killing.aftermath import Aftermath, judge
from floodmark.engine.drill.killing.driver import SMALL_JVM
from floodmark.engine.drill.killing.traps import wait_for

if TYPE_CHECKING:
    from services.cluster import SparkCluster
    from services.kafka import KafkaServer
    from services.postgres import PostgresServer
    from services.s3 import S3Server

PORTIONS = 3
"""Fed before each run, so that a kill in its second batch leaves some to go on with."""
LATEST_BATCH = 2
TRIES = 4
SLOW_MS = 25
ENDS_WITHIN = 240.0
PARTITIONS = int(SMALL_JVM["spark.sql.shuffle.partitions"])


@dataclass
class Tally:
    """Kills by where they hit."""

    hits: Counter[Point] = field(default_factory=Counter)
    at_random: int = 0
    missed: Counter[Point] = field(default_factory=Counter)
    """Wanted, and not hit in any of the tries."""

    @property
    def kills(self) -> int:
        return sum(self.hits.values())

    def add(self, other: Tally) -> None:
        self.hits.update(other.hits)
        self.missed.update(other.missed)
        self.at_random += other.at_random

    def words(self) -> str:
        hits = ", ".join(f"{point.value} {self.hits[point]}" for point in Point)
        words = f"{self.kills} kills ({hits}); {self.at_random} of them at random times"
        if self.missed:
            missed = ", ".join(f"{point.value} {n}" for point, n in self.missed.items())
            words += f"; wanted and not hit: {missed}"
        return words


class Campaign:
    def __init__(
        self,
        scenario: Scenario,
        base: Path,
        seed: str,
        kafka: KafkaServer | None = None,
        postgres: PostgresServer | None = None,
        s3: S3Server | None = None,
        conf: Mapping[str, str] | None = None,
        cluster: SparkCluster | None = None,
    ) -> None:
        self.scenario = scenario
        self._cluster = cluster
        self._base = base
        self._rng = random.Random(f"{seed} {scenario.name}")
        where = s3.place("chaos") if s3 else str(base)
        self._checkpoint = (s3.objects(where) if s3 else base) / "checkpoint"
        self._url, self._storage = f"{where}/checkpoint", s3.storage_options if s3 else {}
        self._conf = {**scenario.conf, **(conf or {})}
        (base / "held").mkdir(parents=True)
        self.events = Events(self._rng)
        self._settings = {
            "base": str(base),
            "where": where.replace("s3://", "s3a://"),
            "source": scenario.source,
            "shape": scenario.shape,
            "sink": scenario.sink,
            "rows_per_batch": str(ROWS),
        }
        self._input = self._make_input(kafka)
        self._sink = self._make_sink(postgres)
        self.tally = Tally()

    def leave_first_offset_half_written(self) -> None:
        """As a kill between its first byte and its rename does: too short a time to hit."""
        offsets = self._checkpoint / "offsets"
        offsets.mkdir(parents=True)
        (self._checkpoint / "metadata").write_text(json.dumps({"id": str(uuid.uuid4())}))
        name = f".0.{uuid.uuid4()}.tmp"
        (offsets / name).write_text("v1\n")
        (offsets / f".{name}.crc").write_bytes(b"crc\0")

    def kill_at(self, point: Point | None) -> None:
        """Kills until the point was hit, or it was tried often enough; None: at a random time."""
        for _ in range(TRIES):
            aftermath = self._kill_once(point)
            if aftermath is None:
                continue
            hit = point is not None and aftermath.hit(point)
            self.tally.hits[point if point and hit else aftermath.point] += 1
            self.tally.at_random += point is None
            if point is None or hit:
                return
        if point is not None:
            self.tally.missed[point] += 1

    def finish(self) -> None:
        """Runs what is left to its end; the sink must then equal the oracle."""
        self.feed(1)
        with self._driver(available_now=True, environment={}) as driver:
            status = driver.wait(ENDS_WITHIN)
            assert status == 0, f"{self.scenario.name}: status {status}\n{driver.last_words()}"
        inspection = api.inspect(self._url, self._storage)
        assert inspection.in_flight_batch is None
        self.require_equal()

    def _kill_once(self, point: Point | None, nth: int | None = None) -> Aftermath | None:
        """None where the driver came to its end first."""
        self.feed(PORTIONS)
        nth = nth or self._rng.randint(1, LATEST_BATCH)
        environment = {}
        if point in (None, Point.DURING_STATE, Point.DURING_SINK):
            environment["FLOODMARK_CHAOS_SLOW_MS"] = str(SLOW_MS)
        if point is not None and self.scenario.holds(point):
            environment["FLOODMARK_CHAOS_HOLD"] = f"{point.value}:{nth}"
        held = self._base / "held"
        trap = trap_for(point, self.scenario, self._checkpoint, held, self._sink, nth, self._rng)
        available_now = self._rng.random() < 0.5
        with self._driver(available_now=available_now, environment=environment) as driver:
            if not wait_for(trap, driver):
                assert driver.status == 0, f"{self.scenario.name}\n{driver.last_words()}"
                return None
            driver.kill()
        aftermath = judge(self._checkpoint, self._sink, PARTITIONS, driver.began)
        self._require_same_reading(aftermath)
        self._require_nothing_twice()
        return aftermath

    def _driver(
        self, *, available_now: bool, environment: dict[str, str], arguments: tuple[str, ...] = ()
    ) -> Driver:
        conf, master = self._conf, "local[2]"
        if self._cluster:
            # Two drivers share the cluster; what slows rows down has to reach their executors.
            slow = {f"spark.executorEnv.{name}": value for name, value in environment.items()}
            conf = {**conf, **self._cluster.conf, **slow, "spark.cores.max": "1"}
            environment = {**self._cluster.environment, **environment}
            master = self._cluster.url
            # Its machines are this one, so that its disk is one that all of them see.
            arguments = (*arguments, "--allow", "checkpoint-on-local-disk")
        return Driver(
            self._base,
            self._settings,
            conf,
            available_now=available_now,
            environment=environment,
            arguments=arguments,
            master=master,
        )

    def feed(self, portions: int) -> None:
        for _ in range(portions):
            self._input.feed(self.events.portion())

    def _make_input(self, kafka: KafkaServer | None) -> Input:
        if self.scenario.source == "files":
            return FileInput(self._base)
        if self.scenario.source == "delta":
            return DeltaInput(self._base / "input")
        assert kafka is not None
        found = KafkaInput(kafka)
        self._settings.update(servers=kafka.bootstrap, topic=found.topic)
        return found

    def _make_sink(self, postgres: PostgresServer | None) -> Sink:
        if self.scenario.sink == "parquet":
            return FilesSink(self._base / "sink")
        if self.scenario.sink != "postgres":
            return DeltaSink(self._base / "sink")
        assert postgres is not None
        url = postgres.create_database("chaos")
        self._settings["database"] = url
        return PostgresSink(url, self._columns, self._base / "held")

    @property
    def _columns(self) -> tuple[str, ...]:
        if self.scenario.shape == "totals":
            return ("key", "total", "events")
        return ("id", "key", "amount")

    def _expected(self) -> Counter[Row]:
        """What a batch query over all input gives."""
        events = self.events.made
        if self.scenario.shape == "totals":
            return Counter((key, *found) for key, found in totals(events).items())
        return Counter(
            _row(one) for one in (distinct(events) if self.scenario.shape == "distinct" else events)
        )

    def _found(self) -> Counter[Row]:
        """The sink's rows; of a history of totals, the last of each key."""
        rows = self._sink.rows(self._columns)
        if self.scenario.shape != "totals":
            return rows
        last: dict[str, Row] = {}
        for row in sorted(rows, key=lambda row: int(row[2])):
            last[row[0]] = row
        return Counter(last.values())

    def require_equal(self) -> None:
        self._require_nothing_twice()
        expected, found = self._expected(), self._found()
        assert found == expected, (
            f"{self.scenario.name}: lost {dict(expected - found)}, too much "
            f"{dict(found - expected)}; {self.tally.words()}; in {self._base}"
        )

    def _require_nothing_twice(self) -> None:
        """Holds at any moment, also right after a kill."""
        rows = self._sink.rows(self._columns)
        if self.scenario.shape == "totals":
            # A key's number of events grows with each of its rows: the same again is a repeat.
            found = Counter((key, events) for key, _, events in rows.elements())
            too_many = found - Counter(found.keys())
        else:
            too_many = rows - self._expected()
        assert not too_many, (
            f"{self.scenario.name}: twice or never fed: {dict(too_many)}; in {self._base}"
        )

    def _require_same_reading(self, aftermath: Aftermath) -> None:
        """Floodmark reads from the dead stream's checkpoint what the folders say."""
        if aftermath.planned is None:
            return
        inspection = api.inspect(self._url, self._storage)
        assert inspection.latest_batch == aftermath.planned
        assert inspection.committed_batch == aftermath.committed
        assert inspection.in_flight_batch == aftermath.in_flight


def _row(event: Event) -> Row:
    return (event.id, event.key, event.amount)


def run_campaign(campaign: Campaign, wanted: Sequence[Point | None]) -> Tally:
    for point in wanted:
        campaign.kill_at(point)
    campaign.finish()
    return campaign.tally
