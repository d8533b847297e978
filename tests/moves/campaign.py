"""Each verb that moves a stream: what its plan says of the sink, and what the sink then gets.

A stream is run, moved, and run on. A second run of the moved checkpoint records what each
batch emits; so what the sink holds in the end is known, row for row, if the plan has told
right which batches it skips. Which input files come again is read from the checkpoint's own
lists, and has to be what the plan has said.
"""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from floodmark import api
from floodmark.changes.consequences import REST
from floodmark.changes.plan import Consequence, Plan
from floodmark.changes.use import Clock
from floodmark.changes.verbs import Carrying, Change
from floodmark.checkpoint.inputs import Taken
from floodmark.errors import WouldLose
from moves.outputs import OUTPUTS, KafkaOutput, Output, Recorded, Rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from services.kafka import KafkaServer

GO = Carrying(execute=True, clock=Clock(pause=lambda seconds: None))
ENDS_WITHIN = 120
BATCHES = 3
_RESET = ("cp", "in", "repo")


@dataclass(frozen=True)
class Shape:
    name: str
    mode: str

    def __call__(self, frame: DataFrame) -> DataFrame:
        from pyspark.sql import functions

        if self.name == "distinct":
            frame = frame.select("key").dropDuplicates(["key"])
        elif self.name == "totals":
            frame = frame.groupBy("key").agg(functions.sum("id").alias("total"))
        return frame.select(functions.to_json(functions.struct("*")).alias("value"))


SHAPES = (
    Shape("stateless", "append"),
    Shape("distinct", "append"),
    Shape("totals", "update"),
    Shape("totals", "complete"),
)


@dataclass(frozen=True)
class Stream:
    sink: str
    shape: Shape
    in_flight: bool
    noted: bool
    """The sink stands in a note of a start; else the plan speaks of every kind."""

    def __str__(self) -> str:
        flight = "in-flight" if self.in_flight else "committed"
        known = "noted" if self.noted else "unknown"
        return f"{self.sink}-{self.shape.name}-{self.shape.mode}-{flight}-{known}"


def streams() -> tuple[Stream, ...]:
    """Every sink with every shape that it takes; whether it is noted goes by turns."""
    combinations = [
        (sink, shape, in_flight)
        for sink, output in OUTPUTS.items()
        for shape in SHAPES
        if shape.mode in output.modes
        for in_flight in (False, True)
    ]
    return tuple(
        Stream(sink, shape, in_flight, turn // 2 % 2 == 0)
        for turn, (sink, shape, in_flight) in enumerate(combinations)
    )


@dataclass(frozen=True)
class Outcome:
    said: Consequence | None
    """What the plan said of this sink; None: that nothing is repeated."""
    again: frozenset[str]
    """The input files whose records the sink got a second time."""
    skipped: frozenset[int]
    differences: int
    """Rows that the sink has, or has not, other than the plan said."""


class Campaign:
    def __init__(
        self, stream: Stream, spark: SparkSession, base: Path, kafka: KafkaServer | None
    ) -> None:
        self.stream = stream
        self.spark = spark
        self.base = base
        self.aside = base.with_name(f"{base.name}-aside")
        (base / "in").mkdir(parents=True)
        kind = OUTPUTS[stream.sink]
        place = base / "out"
        if kind is KafkaOutput:
            assert kafka is not None
            self.output: Output = KafkaOutput(spark, place, kafka)
        else:
            self.output = kind(spark, place)
        self.fed = 0

    @property
    def cp(self) -> Path:
        return self.base / "cp"

    def feed(self) -> None:
        number, rows = self.fed, [{"id": self.fed * 10, "key": "all"}]
        rows.append({"id": number * 10 + 1, "key": f"k{number}"})
        path = self.base / "in" / f"{number}.json"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        os.utime(path, (1_790_000_000 + number * 60,) * 2)
        self.fed += 1

    def run(self, checkpoint: Path, output: Output) -> None:
        reader = self.spark.readStream.schema("id long, key string")
        frame = reader.option("maxFilesPerTrigger", 1).json(str(self.base / "in"))
        writer = self.stream.shape(frame).writeStream.outputMode(self.stream.shape.mode)
        writer = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
        query = output.start(writer)
        assert query.awaitTermination(ENDS_WITHIN)

    def prepare(self) -> None:
        """Three batches; a snapshot of the first one, with the second in flight or not."""
        self.feed()
        self.run(self.cp, self.output)
        if self.stream.noted:
            self._note()
        if self.stream.in_flight:
            self.feed()
            self.run(self.cp, self.output)
            uncommit(self.cp)
        api.backup(str(self.cp), str(self.base / "repo"), carrying=GO)
        while self.fed < BATCHES:
            self.feed()
            self.run(self.cp, self.output)
        if self.stream.in_flight:
            uncommit(self.cp)
        for name in _RESET:
            shutil.copytree(self.base / name, self.aside / name)
        self.output.keep(self.aside / "out")

    def _note(self) -> None:
        options = {"path": str(self.output.place)} if self.output.note != "foreachBatch" else {}
        note = {
            "sink": self.output.note,
            "sink_options": options,
            "output_mode": self.stream.shape.mode,
        }
        folder = self.cp / "_floodmark/starts"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "1.json").write_text(json.dumps(note))

    def _reset(self) -> None:
        for name in (*_RESET, "new", "shadow"):
            shutil.rmtree(self.base / name, ignore_errors=True)
            if (self.aside / name).exists():
                shutil.copytree(self.aside / name, self.base / name)
        self.output.put_back(self.aside / "out")
        self.fed = BATCHES

    def moved_by(self, verb: str) -> Outcome:
        self._reset()
        before = _files_by_batch(self.cp)
        place, plan = self._move(verb)
        done = _committed(place)
        holds = self.output.rows()
        kept = self.output.kept()
        self.feed()
        api.copy(str(place), str(self.base / "shadow"), carrying=GO)
        recorded = Recorded(self.spark)
        self.run(self.base / "shadow", recorded)
        self.run(place, self.output)
        said = _said(plan, self.output.kind)
        emitted = {batch: rows for batch, rows in recorded.batches.items() if batch not in done}
        skipped = self._skipped(said, emitted, holds, plan)
        got = {b: files for b, files in _files_by_batch(place).items() if b in emitted}
        had = {
            name
            for batch, files in before.items()
            if kept is None or batch in kept
            for name in files
        }
        again = _names(got, set(emitted) - skipped) & had
        found = self.output.rows()
        wanted = self._wanted(holds, emitted, skipped)
        unsaid = (found - wanted) + (wanted - found)
        unsaid += self._unsaid_files(said, again, before)
        lost = {f"{number}.json" for number in range(self.fed)} - had
        lost -= _names(got, set(emitted) - skipped)
        if lost and not (said and (said.skips or said.lost)):
            unsaid.update(f"lost {name}" for name in lost)
        return Outcome(said, frozenset(again), frozenset(skipped), unsaid.total())

    def _move(self, verb: str) -> tuple[Path, Plan]:
        name, options = VERBS[verb]
        planned = name(self, options, Carrying()).plan
        needed = planned.unaccepted
        if needed:
            refused = False
            try:
                name(self, options, GO)
            except WouldLose:
                refused = True
            assert refused, f"{verb} asked for {needed}, and went on without"
        options = {**options, "accept": needed} if needed else options
        change = name(self, options, GO)
        assert change.executed
        assert _told(change.plan) == _told(planned)
        return Path(change.plan.target), change.plan

    def _skipped(
        self, said: Consequence | None, emitted: dict[int, Rows], holds: Rows, plan: Plan
    ) -> set[int]:
        if said is not None and said.skips is not None:
            first, last = said.skips
            return {batch for batch in emitted if first <= batch <= last}
        # Run again over its range under its own number, a sink that has it takes it once.
        carried = plan.verb in ("upgrade", "copy", "restore") and self.output.kind != REST
        knows = said is None or (said.again is None and not said.loses_or_repeats)
        latest = min(emitted, default=-1)
        entry = (self.cp if plan.verb != "restore" else self.aside / "cp") / f"offsets/{latest}"
        if not (self.stream.in_flight and carried and knows and entry.exists()):
            return set()
        same = (Path(plan.target) / f"offsets/{latest}").read_bytes() == entry.read_bytes()
        return {latest} if same else set()

    def _wanted(self, holds: Rows, emitted: dict[int, Rows], skipped: set[int]) -> Rows:
        taken = [rows for batch, rows in sorted(emitted.items()) if batch not in skipped]
        if self.stream.sink == "delta" and self.stream.shape.mode == "complete":
            return taken[-1] if taken else holds
        return sum(taken, Counter(holds))

    def _unsaid_files(
        self, said: Consequence | None, again: set[str], before: dict[int, set[str]]
    ) -> Counter[str]:
        """Input files that came again and were not named, or were named and did not."""
        named: set[str] = set()
        if said is not None and said.again is not None and not self._replaces():
            first, last = said.again
            named = _names(before, set(range(first, last + 1)))
        if self._replaces():
            return Counter()
        if said is not None and not said.certain and again <= named:
            return Counter()
        return Counter(again ^ named)

    def _replaces(self) -> bool:
        return self.stream.sink == "delta" and self.stream.shape.mode == "complete"

    def rewind(self, options: dict[str, Any], how: Carrying) -> Change:
        sink = str(self.output.place) if self.stream.sink == "file" else None
        return api.rewind(str(self.cp), to_batch=0, sink=sink, carrying=how, **options)

    def restore(self, options: dict[str, Any], how: Carrying) -> Change:
        given = dict(options)
        place = given.pop("place")
        if given.pop("named", False) and self.stream.sink == "file":
            given["sink"] = str(self.output.place)
        return api.restore(str(self.base / "repo"), str(self.base / place), carrying=how, **given)

    def upgrade(self, options: dict[str, Any], how: Carrying) -> Change:
        return api.upgrade(str(self.cp), str(self.base / "new"), carrying=how, **options)

    def repair(self, options: dict[str, Any], how: Carrying) -> Change:
        """Falls back to an earlier batch: the newest state, or entry, is lost."""
        _lose_newest(self.cp, self.stream)
        sink = str(self.output.place) if self.stream.sink in ("file", "delta") else None
        return api.repair(str(self.cp), sink=sink, carrying=how, **options)

    def copy(self, options: dict[str, Any], how: Carrying) -> Change:
        return api.copy(str(self.cp), str(self.base / "new"), carrying=how, **options)


Verb = tuple[Callable[[Campaign, dict[str, Any], Carrying], Change], dict[str, Any]]
VERBS: dict[str, Verb] = {
    "rewind": (Campaign.rewind, {}),
    "rewind --keep-identity": (Campaign.rewind, {"keep_identity": True}),
    "restore in place": (Campaign.restore, {"place": "cp"}),
    "restore in place --sink": (Campaign.restore, {"place": "cp", "named": True}),
    "restore in place --keep-identity": (Campaign.restore, {"place": "cp", "keep_identity": True}),
    "restore elsewhere": (Campaign.restore, {"place": "new"}),
    "upgrade": (Campaign.upgrade, {}),
    "upgrade --drop-in-flight": (Campaign.upgrade, {"drop_in_flight": True}),
    "upgrade --from-batch": (Campaign.upgrade, {"from_batch": 0}),
    "upgrade --new-identity": (Campaign.upgrade, {"new_identity": True}),
    "upgrade --without-state": (Campaign.upgrade, {"without_state": True}),
    "upgrade --without-state --from-batch": (
        Campaign.upgrade,
        {"without_state": True, "from_batch": 0},
    ),
    "upgrade --restart-numbering": (Campaign.upgrade, {"restart_numbering": True}),
    "upgrade --restart-numbering --new-identity": (
        Campaign.upgrade,
        {"restart_numbering": True, "new_identity": True},
    ),
    "repair": (Campaign.repair, {}),
    "copy": (Campaign.copy, {}),
    "copy --new-identity": (Campaign.copy, {"new_identity": True}),
}


def verbs_for(stream: Stream) -> Iterator[str]:
    for verb in VERBS:
        # State keeps its numbers; and without a batch in flight there is none to drop.
        if "--restart-numbering" in verb and stream.shape.name != "stateless":
            continue
        if "--drop-in-flight" in verb and not stream.in_flight:
            continue
        if verb.endswith("--sink") and stream.sink != "file":
            continue
        yield verb


def uncommit(checkpoint: Path) -> None:
    """As after a crash between the sink's commit and Spark's own."""
    last = max(_committed(checkpoint))
    (checkpoint / "commits" / str(last)).unlink()
    (checkpoint / "commits" / f".{last}.crc").unlink(missing_ok=True)


def _lose_newest(checkpoint: Path, stream: Stream) -> None:
    newest = max(_committed(checkpoint))
    if stream.shape.name == "stateless":
        (checkpoint / f"offsets/.{newest}.crc").unlink(missing_ok=True)
        (checkpoint / f"offsets/{newest}").write_bytes(b"v1\n{")
        return
    for path in (checkpoint / "state").glob(f"*/*/{newest + 1}.delta"):
        path.unlink()
        path.with_name(f".{path.name}.crc").unlink(missing_ok=True)


def _committed(checkpoint: Path) -> set[int]:
    return {int(path.name) for path in (checkpoint / "commits").glob("[0-9]*")}


def _files_by_batch(checkpoint: Path) -> dict[int, set[str]]:
    found: dict[int, set[str]] = {}
    for file in api.files(str(checkpoint)):
        if file.taken is Taken.BY_BATCH and file.batch is not None:
            found.setdefault(file.batch, set()).add(Path(file.path).name)
    return found


def _names(by_batch: dict[int, set[str]], batches: set[int]) -> set[str]:
    return {name for batch, names in by_batch.items() if batch in batches for name in names}


def _said(plan: Plan, kind: str) -> Consequence | None:
    if plan.verb == "repair":
        batches = [batch for one in plan.options["repeats"] for batch in one["batches"]]
        if not batches:
            return None
        return Consequence(kind, "", True, again=(min(batches), max(batches)))
    return next((item for item in plan.consequences if item.sink == kind), None)


def _told(plan: Plan) -> list[tuple[str, str]]:
    return [(item.sink, item.words) for item in plan.consequences]
