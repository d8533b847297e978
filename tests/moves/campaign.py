"""Each verb that moves a stream: what its plan says of the sink, and what the sink then gets.

A stream is run, moved, and run on. A second run of the moved checkpoint records what each
batch emits; so what the sink holds in the end is known, row for row, if the plan has told
right which batches it skips. Which pieces of the input come again is read from the
checkpoint's own logs, and has to be what the plan has said. Where each row of the result is
written once, the query over all of the input tells what is missing and what is there twice.
"""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from carried import GO
from floodmark import api
from floodmark.changes.plan import Consequence, Plan
from floodmark.changes.sinks import EVERY, REST
from floodmark.changes.sources.out_of_reach import SKIPS
from floodmark.errors import WouldLose
from moves.inputs import INPUTS, KafkaInput, Pieces, put_back
from moves.outputs import OUTPUTS, KafkaOutput, OnceSql, Output, Recorded, Rows
from moves.streams import BATCHES, Stream
from moves.verbs import (
    OF_THE_FIRST,
    PLANNED,
    VERBS,
    Move,
    Moved,
    Options,
    committed,
    parted,
    planned,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from services.kafka import KafkaServer

ENDS_WITHIN = 300
_EMITTED: dict[str, dict[int, Rows]] = {}
"""What a stream emits does not depend on its sink."""
_CARRY = ("upgrade", "copy", "restore", "undo", "repartition", "convert")


@dataclass(frozen=True)
class Outcome:
    said: Consequence | None
    """What the plan said of this sink; None: that nothing is repeated."""
    again: frozenset[str]
    """The pieces of the input whose records the sink got a second time."""
    skipped: frozenset[int]
    unsaid: Counter[str]
    """Rows and pieces that the sink has, or has not, other than the plan said."""

    @property
    def differences(self) -> int:
        return self.unsaid.total()


class FailedAsSaid(Exception):
    """The first plan said that the query would fail, and so it did before the second move."""


@dataclass(frozen=True)
class Services:
    """What a stream may need beside Spark: a broker, and the address of an empty database."""

    kafka: KafkaServer | None = None
    database: str | None = None


class Campaign:
    def __init__(self, stream: Stream, spark: SparkSession, base: Path, services: Services) -> None:
        self.stream = stream
        self.spark = spark
        self.base = base
        self.aside = base.with_name(f"{base.name}-aside")
        base.mkdir(parents=True)
        self.output = self._output(services)
        source = INPUTS[stream.source]
        if source is KafkaInput:
            assert services.kafka is not None
            self.input = KafkaInput(spark, base / "in", services.kafka)
        else:
            self.input = source(spark, base / "in")
        self.fed = 0
        self.verb = ""
        self.ever: set[str] = set()
        """What a sink has of batches whose numbers were used again."""

    def _output(self, services: Services) -> Output:
        kind, place = OUTPUTS[self.stream.sink], self.base / "out"
        if kind is KafkaOutput:
            assert services.kafka is not None
            return KafkaOutput(self.spark, place, services.kafka)
        if kind is OnceSql:
            return OnceSql(self.spark, place, services.database)
        return kind(self.spark, place)

    @property
    def cp(self) -> Path:
        return self.base / "cp"

    def feed(self) -> None:
        number = self.fed
        rows = [
            {"id": number * 10, "key": "all"},
            {"id": number * 10 + 1, "key": f"k{number}"},
        ]
        self.input.feed(number, rows)
        self.fed += 1

    def run(self, checkpoint: Path, output: Output) -> None:
        frame = self.stream.shape(self.input.read(checkpoint))
        writer = frame.writeStream.outputMode(self.stream.shape.mode)
        writer = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
        query = output.start(writer)
        assert query.awaitTermination(ENDS_WITHIN)

    def prepare(self) -> None:
        """Three pieces; a snapshot of the first one, with the second in flight or not."""
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
        for name in self._kept_aside:
            shutil.copytree(self.base / name, self.aside / name)
        self.output.keep(self.aside / "out")

    @property
    def _kept_aside(self) -> tuple[str, ...]:
        return ("cp", "repo", "in") if self.input.resets else ("cp", "repo")

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
        for path in (*self.base.glob("new-*"), *self.base.glob("shadow*"), self.base / "before"):
            shutil.rmtree(path, ignore_errors=True)
        for name in self._kept_aside:
            put_back(self.base / name, self.aside / name)
        self.output.put_back(self.aside / "out")
        if self.input.resets:
            self.fed = BATCHES

    def moved_by(self, verb: str) -> Outcome:
        """The last verb of `a then b` is judged."""
        self._reset()
        self.verb, self.ever = verb, set()
        *earlier, last = parted(verb)
        moved = Moved(self.stream, self.base, self.cp, self.output.place, self.input)
        had = self.input.pieces(self.cp)
        for one in earlier:
            plan = self._move(moved, one)
            moved = moved.at(Path(plan.target))
            if f"{one} then " in verb:
                self.feed()
                if not self._runs_on(moved.place, self.output):
                    raise _failed(_said(plan, self.output.kind))
                self.ever |= _names(had, set(had))
                had = {**had, **self.input.pieces(moved.place)}
        left = moved.first if last.endswith(OF_THE_FIRST) else moved
        shutil.copytree(left.place, self.base / "before")
        return self._judge(self._move(moved, last), had)

    def _runs_on(self, place: Path, output: Output) -> bool:
        from pyspark.errors import StreamingQueryException

        try:
            self.run(place, output)
        except StreamingQueryException as error:
            if "STATE_STORE" not in str(error):
                raise
            return False
        return True

    def _judge(self, plan: Plan, had: Pieces) -> Outcome:
        place = Path(plan.target)
        done = committed(place)
        holds = self.output.rows()
        kept = self.output.kept()
        self.feed()
        recorded = self._recorded(place)
        runs_on = self._runs_on(place, self.output)
        said = _said(plan, self.output.kind)
        if self.verb.endswith(OF_THE_FIRST):
            said = _of_another_copy(plan, self.output.kind) or said
        emitted = {batch: rows for batch, rows in recorded.items() if batch not in done}
        skipped = self._skipped(said, emitted, plan, kept)
        fails_at = said.fails_at if said is not None and self._own_sink() else None
        if fails_at is not None and skipped:
            skipped |= {batch for batch in emitted if batch >= fails_at}
        pieces = self.input.pieces(place)
        got = _names(pieces, set(emitted) - skipped)
        sink_had = _names(had, set(had)) | self.ever if kept is None else _names(had, kept)
        again = got & sink_had
        found = self.output.rows()
        wanted = self._wanted(holds, emitted, skipped)
        unsaid = Counter((found - wanted) + (wanted - found))
        unsaid += self._unsaid_pieces(plan, said, again, had, sink_had)
        lost = {str(number) for number in range(self.fed)} - sink_had - got
        if lost and not (said and (said.skips or said.lost)):
            unsaid.update(f"lost {name}" for name in lost)
        unsaid += self._misjudged(plan, said, holds, found)
        stops = fails_at is not None and max(emitted) >= fails_at
        if stops and runs_on:
            runs_on = self._runs_on_further(place, fails_at)
        if _may_skip(said):
            # Said with an "if" and without numbers: what is missing then, and a query that fails.
            return Outcome(said, frozenset(again), frozenset(skipped), found - wanted)
        if runs_on == stops:
            unsaid["fails" if stops else "runs on"] += 1
        return Outcome(said, frozenset(again), frozenset(skipped), unsaid)

    def _runs_on_further(self, place: Path, fails_at: int | None) -> bool:
        """A batch without data comes only where the watermark has moved: skipped ones leave it."""
        assert fails_at is not None
        while max(planned(place)) < fails_at:
            self.feed()
            if not self._runs_on(place, self.output):
                return False
        return True

    def _recorded(self, place: Path) -> dict[int, Rows]:
        """What the moved stream emits; known already where only the sink is another."""
        log = [
            (path.parent.name, path.name, _ends(path))
            for name in ("offsets", "commits")
            for path in sorted((place / name).glob("[0-9]*"))
        ]
        state = sorted(path.name for path in place.glob("state/*/*/*.*") if path.name[0] != ".")
        seen = sorted(path.name for path in place.glob("sources/0/[0-9]*"))
        key = repr((self.stream.shape, self.verb, self.stream.in_flight, log, state, seen))
        if not self.input.resets or key not in _EMITTED:
            api.copy(str(place), str(self.base / "shadow"), carrying=GO)
            recorded = Recorded(self.spark)
            self.run(self.base / "shadow", recorded)
            _EMITTED[key] = recorded.batches
        return _EMITTED[key]

    def _move(self, moved: Moved, verb: str) -> Plan:
        options = dict(VERBS[verb].options)
        move = VERBS[verb].move
        planned = self._planned(move, moved, options)
        needed = planned.unaccepted
        if needed:
            refused = False
            try:
                move(moved, options, GO)
            except WouldLose:
                refused = True
            assert refused, f"{verb} asked for {needed}, and went on without"
        if needed:
            options["accept"] = (*options.get("accept", ()), *needed)
        change = move(moved, options, GO)
        assert change.executed
        assert _told(change.plan) == _told(planned)
        return change.plan

    def _planned(self, move: Move, moved: Moved, options: Options) -> Plan:
        """The plan; what a refusal asks for by name is accepted."""
        try:
            return move(moved, options, PLANNED).plan
        except WouldLose as refusal:
            asked = re.search(r"--accept ([a-z-]+)", refusal.do)
            if asked is None:
                raise
            options["accept"] = (*options.get("accept", ()), asked[1])
            return move(moved, options, PLANNED).plan

    def _skipped(
        self,
        said: Consequence | None,
        emitted: dict[int, Rows],
        plan: Plan,
        kept: set[int] | None,
    ) -> set[int]:
        if said is not None and said.skips is not None:
            first, last = said.skips
            return {batch for batch in emitted if first <= batch <= last}
        # Run again over its range under its own number, a sink that has it takes it once.
        carried = plan.verb in _CARRY and self.output.kind != REST
        knows = said is None or (said.again is None and not said.loses_or_repeats)
        latest = min(emitted, default=-1)
        before = self.aside / "cp" if plan.verb == "undo" else self.base / "before"
        entry = before / f"offsets/{latest}"
        if not (self.stream.in_flight and carried and knows and entry.exists()):
            return set()
        if kept is not None and latest not in kept:
            return set()
        written = Path(plan.target) / f"offsets/{latest}"
        same = plan.verb in ("repartition", "convert") or (
            written.read_bytes() == entry.read_bytes()
        )
        return {latest} if same else set()

    def _wanted(self, holds: Rows, emitted: dict[int, Rows], skipped: set[int]) -> Rows:
        taken = [rows for batch, rows in sorted(emitted.items()) if batch not in skipped]
        if self._replaces():
            return taken[-1] if taken else holds
        return sum(taken, Counter(holds))

    def _unsaid_pieces(
        self,
        plan: Plan,
        said: Consequence | None,
        again: set[str],
        before: Pieces,
        sink_had: set[str],
    ) -> Counter[str]:
        """Pieces that came again and were not named, or were named and did not."""
        if self._replaces():
            return Counter()
        named: set[str] = set()
        if said is not None and said.again is not None:
            first, last = said.again
            named = _names(before, set(range(first, last + 1)))
        if said is not None and said.skips is not None:
            # Batches may be cut otherwise now: what comes under later numbers is not skipped.
            named = _names(before, {batch for batch in before if batch >= said.skips[0]})
            return Counter(f"again {name}" for name in again - named)
        if "to_offsets" in plan.options and said is not None and said.loses_or_repeats:
            named |= _names(before, {batch for batch in before if batch > 0}) & sink_had
        if said is not None and not said.certain and (said.again is None or again <= named):
            return Counter()
        return Counter(f"again {name}" for name in again ^ named)

    def _misjudged(
        self, plan: Plan, said: Consequence | None, holds: Rows, found: Rows
    ) -> Counter[str]:
        """Against the query over all of the input, where every row is written once."""
        shape = self.stream.shape
        anew = plan.options.get("without_state") and shape.name != "stateless"
        if shape.mode != "append" or anew:
            return Counter()
        unsaid: Counter[str] = Counter()
        risky = said is not None and said.loses_or_repeats
        if not risky and self.stream.sink != "kafka":  # a topic keeps the rows of earlier moves
            unsaid.update(f"twice {row}" for row in found - holds if found[row] > 1)
        if not (said is not None and (said.skips or said.lost or not said.certain)):
            unsaid.update(f"missing {row}" for row in shape.expected(self.fed) if not found[row])
        return unsaid

    def _own_sink(self) -> bool:
        """A sink of Spark itself: `once` computes a batch that it skips."""
        return self.stream.sink in ("file", "delta")

    def _replaces(self) -> bool:
        return self.stream.sink == "delta" and self.stream.shape.mode == "complete"


def _failed(said: Consequence | None) -> Exception:
    is_said = said is not None and (said.fails_at is not None or _may_skip(said))
    return FailedAsSaid() if is_said else AssertionError("the query failed, and no plan said so")


def _may_skip(said: Consequence | None) -> bool:
    return said is not None and not said.certain and said.accept == "skips" and said.skips is None


def uncommit(checkpoint: Path) -> None:
    """As after a crash between the sink's commit and Spark's own."""
    last = max(committed(checkpoint))
    (checkpoint / "commits" / str(last)).unlink()
    (checkpoint / "commits" / f".{last}.crc").unlink(missing_ok=True)


def _ends(entry: Path) -> str:
    """What an entry says of the sources: times and paths are each stream's own."""
    lines = entry.read_text().splitlines()
    return "|".join(lines[2:]) if entry.parent.name == "offsets" else ""


def _names(by_batch: Pieces, batches: set[int]) -> set[str]:
    return {name for batch, names in by_batch.items() if batch in batches for name in names}


def _said(plan: Plan, kind: str) -> Consequence | None:
    if plan.verb == "repair":
        batches = [batch for one in plan.options["repeats"] for batch in one["batches"]]
        if not batches:
            return next((item for item in plan.consequences if item.sink == kind), None)
        return Consequence(kind, "", True, again=(min(batches), max(batches)))
    return next((item for item in plan.consequences if item.sink == kind), None)


def _of_another_copy(plan: Plan, kind: str) -> Consequence | None:
    """Nobody asked the sink what another copy of the checkpoint has written: it may be anything."""
    found = next((i for i in plan.consequences if i.sink == EVERY and not i.certain), None)
    if found is None:
        return None
    return replace(found, sink=kind, loses_or_repeats=True, accept=SKIPS)


def _told(plan: Plan) -> list[tuple[str, str]]:
    return [(item.sink, item.words) for item in plan.consequences]
