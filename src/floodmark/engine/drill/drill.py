"""Runs a fire drill: a pipeline runs undisturbed, then with its driver killed at each point.

After each crash and restart the sinks must hold the same as after the undisturbed run. All runs
have checkpoints and sinks of their own in a scratch folder.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from floodmark.checkpoint.conf_keys import MASTER
from floodmark.drills.advice import NEW_CHECKPOINT, RANDOM, UNDISTURBED, DrilledSink, advice_for
from floodmark.drills.points import POINTS, Point
from floodmark.drills.sink_difference import (
    PointResult,
    SinkDifference,
    compare_sinks,
    point_result,
)
from floodmark.engine.app.options import ScriptOptions
from floodmark.engine.drill.databases import Databases
from floodmark.engine.drill.doors.overwrites import WIPED
from floodmark.engine.drill.drilled_run import QueryFacts, Run, another, application_text, killing
from floodmark.engine.drill.run_spec import RunSpec
from floodmark.engine.drill.samples.given_input import inputs_of
from floodmark.engine.proof.scratch import require_outside, scratch_place
from floodmark.errors import FloodmarkError, NoAnswer, WrongUse
from floodmark.progress import counted
from floodmark.screen import ShownByFields

_TRIES = 3
_FUNCTION_POINTS = {*(one.value for one in POINTS), RANDOM}


@dataclass(frozen=True)
class DrillOptions:
    target: str
    inputs: tuple[str, ...]
    sink: str | None = None
    points: tuple[str, ...] = ()
    """The chosen points of a batch; empty: all points that the pipeline has."""
    random_kills: int = 1
    ignore: tuple[str, ...] = ()
    limit: int = 5
    seed: int = 0
    fresh: bool = False
    """True to begin with a new checkpoint, even if there is one to copy."""
    scratch: str | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    conf: Mapping[str, str] = field(default_factory=dict)
    script: ScriptOptions = field(default_factory=ScriptOptions)
    say: Callable[[str], Any] = lambda words: None


@dataclass(frozen=True, repr=False)
class Drill(ShownByFields):
    """The result of a drill: a pipeline's sinks after its driver was killed."""

    application: str
    """The pipeline that the drill ran."""
    survived: bool
    """Whether nothing was lost or repeated at any point that was hit."""
    sources: tuple[str, ...]
    """The kinds of its sources."""
    sinks: tuple[DrilledSink, ...]
    """The places that the pipeline writes to."""
    begins_after: int | None
    """The last finished batch of the checkpoint that was copied; null: the drill made a new one."""
    copied_checkpoint: str | None
    """The checkpoint that was copied."""
    why_new: str
    """The reason why the drill began with a new checkpoint."""
    rows: int
    """Rows of the sample that the query read."""
    late_rows: int
    """Rows of the sample that came after the watermark, and were dropped."""
    batches: int
    """The number of batches in the undisturbed run."""
    points: tuple[PointResult, ...]
    """One result for each point at which the driver was killed."""
    advice: tuple[str, ...]
    """Changes with which the pipeline survives."""
    refused: tuple[str, ...] = ()
    """Effects of the pipeline's functions elsewhere that the drill refused."""


def drill_application(options: DrillOptions) -> Drill:
    chosen = _chosen(options)
    application_text(options.target)
    master = options.conf.get(MASTER, "local")
    if not master.startswith("local") and options.scratch is None:
        raise WrongUse(
            f"a drill runs on one machine, and the master is {master}",
            "The drill keeps checkpoints and sinks on this machine's disk.",
            "Leave out --master, or name a folder that all machines see: --scratch DIR.",
        )
    with ExitStack() as closing:
        place = closing.enter_context(scratch_place(options.scratch, "drill"))
        shared = place / "sample"
        shared.mkdir()
        inputs = inputs_of(options.inputs, shared)
        for one in inputs:
            if one.kind == "folder":
                require_outside(place, "--scratch", one.place, "the sample")
        databases = closing.enter_context(Databases(options.sink))
        spec = RunSpec(
            options.target,
            str(place / "runs" / UNDISTURBED),
            str(shared),
            inputs,
            options.settings,
            options.conf,
            options.script,
            carry_on=not options.fresh,
            # Writing the archive takes as long as two runs save: a single point does not need it.
            archive=str(shared / "classes.jsa") if len(chosen) != 1 else None,
        )
        return _Drilling(options, spec, databases).run(chosen)


def _chosen(options: DrillOptions) -> tuple[str, ...]:
    for name in options.points:
        if name not in (*_FUNCTION_POINTS, NEW_CHECKPOINT):
            raise WrongUse(
                f"--point {name}: there is no such point",
                f"Points: {', '.join([*(one.value for one in POINTS), RANDOM, NEW_CHECKPOINT])}.",
            )
    return options.points


def generators(seed: int, points: Sequence[str]) -> list[random.Random]:
    """Return a generator for each point, also for each of several random kills."""
    return [
        random.Random(f"{seed} {name} {points[:at].count(name)}")  # nosec B311
        for at, name in enumerate(points)
    ]


@dataclass(frozen=True)
class _Drilling:
    options: DrillOptions
    spec: RunSpec
    databases: Databases

    def run(self, chosen: tuple[str, ...]) -> Drill:
        undisturbed = self._undisturbed()
        facts = undisturbed.facts()
        if not facts.rows:
            raise WrongUse(
                "the query has read no row of the sample",
                "Without rows, a crash cannot lose or repeat anything.",
                "Give a sample that the code's own filters and schema accept.",
            )
        if not facts.wrote:
            raise _nothing_written(facts)
        expected = undisturbed.rows()
        results = [*self._wiped(undisturbed)]
        points = chosen or tuple(self._possible(facts))
        chances = generators(self.options.seed, points)
        for name, chance in zip(counted(points, "points"), chances, strict=True):
            results += self._at(name, undisturbed.folder, facts, expected, chance)
        if all(one.survived is None for one in results):
            raise _nothing_hit(results)
        sinks = tuple(
            DrilledSink(one.real, one.kind, one.by, one.transaction is not None, one.copied)
            for one in facts.notes
        )
        advice = tuple(advice_for(results, sinks, facts.sources, facts.output_mode))
        return Drill(
            self.options.target,
            all(one.survived is not False for one in results),
            facts.sources,
            sinks,
            facts.beginning.batch,
            facts.beginning.checkpoint,
            facts.beginning.why,
            facts.rows,
            facts.late,
            facts.batches,
            tuple(results),
            advice,
            facts.refused,
        )

    def _undisturbed(self) -> Run:
        self.options.say(UNDISTURBED)
        with Run(replace(self.spec, database=self.databases.new())) as run:
            try:
                run.to_the_end()
            except NoAnswer as error:
                raise NoAnswer(
                    f"the pipeline fails on the sample, without any crash: {error.what}",
                    error.why,
                    "Repair that first, or give another sample. If the copy of the pipeline's "
                    "checkpoint does not fit, --fresh begins with a new one.",
                ) from None
            return run

    def _possible(self, facts: QueryFacts) -> Iterator[str]:
        for point in POINTS:
            if point is not Point.DURING_STATE or facts.is_stateful:
                yield point.value
        yield from [RANDOM] * self.options.random_kills
        if any(one.transaction for one in facts.notes) and not facts.is_stateful:
            yield NEW_CHECKPOINT

    def _at(
        self,
        name: str,
        undisturbed: Path,
        facts: QueryFacts,
        expected: Mapping[str, Any],
        chance: random.Random,
    ) -> Iterator[PointResult]:
        if name == NEW_CHECKPOINT:
            yield from self._new_checkpoint(facts)
            return
        point = None if name == RANDOM else Point(name)
        if point is Point.DURING_STATE and not facts.is_stateful:
            yield PointResult(name, None, words="the query keeps no state")
            return
        self.options.say(name)
        for turn in range(_TRIES):
            with another(self.spec, name, self.databases.new()) as run:
                aftermath = run.kill(killing(point, facts, undisturbed, chance, turn))
                if aftermath is None or (point is not None and not aftermath.hit(point)):
                    continue
                failure = _restart(run)
                yield point_result(
                    name,
                    aftermath.planned,
                    self._differences(expected, {} if failure else run.rows()),
                    failure,
                    aftermath.point.value,
                )
                return
        yield PointResult(name, None, words=f"not hit in {_TRIES} tries")

    def _differences(
        self, expected: Mapping[str, Any], found: Mapping[str, Any]
    ) -> dict[str, SinkDifference]:
        ignored, limit = self.options.ignore, self.options.limit
        return {
            place: compare_sinks(expected.get(place, ()), found.get(place, ()), ignored, limit)
            for place in {**expected, **found}
        }

    def _wiped(self, run: Run) -> Iterator[PointResult]:
        """Yield the rows that the undisturbed run itself has overwritten.

        Only for one sink: of several, an overwritten one may hold a batch for the others.
        """
        path = run.folder / WIPED
        notes = run.facts().notes
        if len(notes) > 1 or not path.exists() or not path.stat().st_size:
            return
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        place = notes[0].real
        found = compare_sinks(rows, (), self.options.ignore, self.options.limit)
        yield point_result(UNDISTURBED, None, {place: found})

    def _new_checkpoint(self, facts: QueryFacts) -> Iterator[PointResult]:
        """Run the pipeline again with a new checkpoint on the existing sinks."""
        self.options.say(NEW_CHECKPOINT)
        spec = replace(self.spec, carry_on=False)
        with another(spec, NEW_CHECKPOINT, self.databases.new()) as run:
            run.to_the_end()
            first = run.rows()
            run.forget_checkpoint()
            failure = _restart(run)
        # The sample is expected twice, as a new checkpoint reads all of it again.
        twice = {place: [*rows, *rows] for place, rows in first.items()}
        appended = {one.real for one in facts.notes if one.append}
        wanted = {place: rows for place, rows in twice.items() if place in appended}
        found = {place: rows for place, rows in run.rows().items() if place in appended}
        yield point_result(NEW_CHECKPOINT, None, self._differences(wanted, found), failure)


def _nothing_written(facts: QueryFacts) -> WrongUse:
    late = f", of which {facts.late:,} came after the watermark" if facts.late else ""
    why = "Without written rows, a crash cannot lose or repeat anything."
    do = "Give a sample that the code accepts."
    if facts.is_stateful and facts.output_mode.lower() == "append":
        why += (
            "\nIn append mode a window, a session or a joined row comes out when the watermark "
            "has passed it."
        )
        do += " Let its last rows be later than the others by the window and the watermark's delay."
    if facts.beginning.checkpoint is not None:
        do += " Or begin without the watermark and state of the pipeline's checkpoint: --fresh"
    return WrongUse(
        f"the query has read {facts.rows:,} rows of the sample{late}, and has written nothing",
        why,
        do,
    )


def _nothing_hit(results: Sequence[PointResult]) -> NoAnswer:
    return NoAnswer(
        "no driver was killed, so the drill cannot say what a crash does",
        "\n".join(f"{one.point}: {one.words}" for one in results),
        "Choose other points, or give a sample with more rows.",
    )


def _restart(run: Run) -> str:
    """Restart the pipeline; return the reason if that fails, else an empty text."""
    try:
        run.to_the_end()
    except FloodmarkError as error:
        return f"the restart fails: {error.what} {error.why}".strip()
    return ""
