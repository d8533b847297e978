"""Runs old and new code over the same past batches, from the same state, and compares outputs.

Each code has a fork of its own. Where `check` says so, the state is first migrated for the new
code, as a deployment would do it. Then both codes read the offsets with which the batches were
planned.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

from floodmark.addresses import public_url
from floodmark.changes.carry.before_batch import before_batch, replayable_batches
from floodmark.changes.carry.needed_state import needed_state
from floodmark.checkpoint.layout import METADATA, OFFSETS
from floodmark.checkpoint.model import Checkpoint
from floodmark.engine.code.check import compare as compare_code
from floodmark.engine.code.check import described_code
from floodmark.engine.code.rehearse import (
    capped,
    fork_checkpoint,
    require_one_machine,
    state_paths,
)
from floodmark.engine.pipelines.building import built
from floodmark.engine.proof.kept_rows import RowKeeper, distinct_names
from floodmark.engine.proof.key_columns import grouping_columns
from floodmark.engine.proof.planned_batches import (
    SOURCE_OPTIONS,
    PlannedBatches,
    new_identity,
    oldest_words,
    require_range,
)
from floodmark.engine.proof.proof_run import ProofRun
from floodmark.engine.proof.row_diff import RowCounts, RowDifference, compare_rows
from floodmark.engine.proof.scratch import empty_folder, scratch_place
from floodmark.engine.spark.jvm import few_batches_jvm
from floodmark.errors import NoAnswer, NotCarried, WrongUse
from floodmark.progress import counted
from floodmark.rules.restarts.reason import Judgement, Verdict
from floodmark.rules.restarts.verdict import judge_restart
from floodmark.screen import ShownByFields
from floodmark.storage.files import Files, open_files
from floodmark.storage.load import load

_MOST = 10
"""The number of batches that are compared where the user names none."""
_DIFFERENCES = "differences.jsonl"
Migrate = Callable[[str, str, tuple[str, ...]], Any]
"""Migrates a checkpoint for the new code: from a location, to a location, accepting rules."""


@dataclass(frozen=True)
class CompareOptions:
    old: str
    new: str
    batches: tuple[int, int] | None = None
    keys: tuple[str, ...] = ()
    """Columns by which rows are matched; by default the columns that the query groups by."""
    limit: int = 20
    export: str | None = None
    run: ProofRun = field(default_factory=ProofRun)


@dataclass(frozen=True, repr=False)
class CodeComparison(ShownByFields):
    """The comparison of old and new code's rows for the same past batches."""

    checkpoint: str
    """The location of the checkpoint."""
    first_batch: int
    """The first batch that was compared."""
    last_batch: int
    """The last batch that was compared."""
    verdict: str | None
    """The verdict of `check` for the new code on the state before the batches; None: no verdict."""
    migrated: bool
    """True where the state was first migrated for the new code."""
    keys: tuple[str, ...]
    """The columns by which rows were matched; empty where whole rows were compared."""
    equal: int
    """Rows that are the same in both outputs."""
    changed: int
    """Keys whose rows differ."""
    only_old: int
    """Rows that only the old code writes."""
    only_new: int
    """Rows that only the new code writes."""
    columns_only_old: tuple[str, ...]
    """Columns that only the old output has."""
    columns_only_new: tuple[str, ...]
    """Columns that only the new output has."""
    sample: tuple[RowDifference, ...]
    """The first differences, up to the limit."""
    foreach_batch: tuple[str, ...] = ()
    """`old`, `new`: the codes with a foreachBatch function. The function was not called, so what
    it does with its rows was not compared."""
    exported: str | None = None
    """The folder with all differences; null unless `--export` was given."""

    @property
    def differ(self) -> bool:
        """Whether rows or columns differ."""
        rows = self.changed + self.only_old + self.only_new
        return bool(rows or self.columns_only_old or self.columns_only_new)


@dataclass(frozen=True)
class _Ran:
    rows: RowKeeper
    columns: tuple[str, ...]
    keys: tuple[str, ...]
    has_function: bool


def compare_applications(
    files: Files, checkpoint: Checkpoint, request: CompareOptions, migrate: Migrate
) -> CodeComparison:
    first, last = _range(checkpoint, request.batches)
    export = (
        None
        if request.export is None
        else empty_folder(request.export, "--export", checkpoint.path)
    )
    with (
        scratch_place(request.run.scratch, "compare", checkpoint.path) as place,
        capped(0, SOURCE_OPTIONS),
        few_batches_jvm(),
    ):
        run = _Running(files, checkpoint, request, place, first, last)
        before = run.old()
        judgement, after = run.new(migrate)
        return _report(run, judgement, before, after, export)


def _range(checkpoint: Checkpoint, given: tuple[int, int] | None) -> tuple[int, int]:
    if given is not None:
        require_range(checkpoint, *given)
        return given
    able = replayable_batches(checkpoint)
    if not able:
        raise NoAnswer(f"{checkpoint.path} has no batch to compare", oldest_words(checkpoint))
    last = able[-1]
    first = last
    while first - 1 in able and last - first + 1 < _MOST:
        first -= 1
    return first, last


@dataclass(frozen=True)
class _Running:
    files: Files
    checkpoint: Checkpoint
    request: CompareOptions
    place: Path
    first: int
    last: int

    def old(self) -> _Ran:
        self.request.run.say("the old code")
        with self._built(self.request.old) as found:
            batches = self._batches(found.writer, "old")
            batches.require_sources(self.first)
            batches.require_input(self.first, self.last, self.request.run.storage)
            batches.begin(self.first)
            return self._run(batches)

    def new(self, migrate: Migrate) -> tuple[Judgement | None, _Ran]:
        """Run the new code from the same state, which is first migrated where that is needed."""
        self.request.run.say("the new code")
        with self._built(self.request.new) as found:
            batches = replace(self._batches(found.writer, "new"), own_watermarks=True)
            batches.require_sources(self.first)
            judgement = None
            if self.first > 0:
                judgement = self._judge(found)
            if judgement is None or judgement.verdict is not Verdict.NEEDS_MIGRATION:
                batches.begin(self.first)
            else:
                self.request.run.say("carrying the state over")
                # A change that `migrate` handles is not accepted: else the state would go by place.
                unsure = (one for one in judgement.reasons if one.verdict is Verdict.UNKNOWN)
                names = tuple(one.rule for one in unsure if one.silent)
                migrate(str(self._before / "fork"), str(batches.place / "fork"), names)
            return judgement, self._run(batches)

    @property
    def _before(self) -> Path:
        return self.place / "before"

    def _judge(self, found: Any) -> Judgement:
        """Return the verdict of `check`, on the checkpoint as it was before the first batch."""
        fork = open_files(str(self._before / "fork"))
        past = before_batch(self.checkpoint, self.first)
        needed = state_paths(needed_state(past, self.first - 1, self.files.read))
        fork_checkpoint(self.files, past, fork, self._before / "fork", needed)
        (self._before / "fork" / OFFSETS / str(self.first)).unlink()
        fork.write(METADATA, new_identity())
        request, run = self.request, self.request.run
        old = described_code(
            request.old, run.settings, run.conf, run.script, (self.checkpoint.path,)
        ).last_start
        comparison = compare_code(found.writer, fork, load(fork), found.code, old)
        # The sink is not asked: its log has later batches than the fork, and it gets no row here.
        judgement = judge_restart(comparison.without_sink)
        if judgement.verdict is Verdict.NEEDS_NEW_CHECKPOINT:
            raise NotCarried(
                "the new code cannot continue with this state, and the state cannot be migrated",
                "\n".join(one.what for one in judgement.reasons if not one.verdict.is_yes),
                f"floodmark check {shlex.quote(self.checkpoint.path)} "
                f"{request.new} says what would be lost.",
            )
        return judgement

    def _built(self, target: str) -> Any:
        request = self.request
        return built(
            target,
            request.run.settings,
            checkpoints=(self.checkpoint.path,),
            conf=request.run.conf,
            log=request.run.log,
            stdout_to_stderr=True,
            script=request.run.script,
            all_settings=False,
        )

    def _batches(self, writer: Any, name: str) -> PlannedBatches:
        require_one_machine(writer._spark)
        rows = RowKeeper(self.place / f"{name}-rows")
        return PlannedBatches(writer, self.files, self.checkpoint, self.place / name, rows)

    def _run(self, batches: PlannedBatches) -> _Ran:
        for batch in counted(range(self.first, self.last + 1), "batches"):
            batches.run(batch)
        query = batches.query
        names = distinct_names([one["name"] for one in json.loads(query.schema_json)["fields"]])
        assert isinstance(batches.sink, RowKeeper)
        return _Ran(
            batches.sink,
            names,
            grouping_columns(query.tree, names),
            query.sink == "foreachBatch",
        )


def _report(
    run: _Running, judgement: Judgement | None, before: _Ran, after: _Ran, export: Path | None
) -> CodeComparison:
    shared = tuple(name for name in before.columns if name in after.columns)
    keys = run.request.keys or (before.keys if before.keys == after.keys else ())
    missing = [name for name in keys if name not in shared]
    if missing:
        raise WrongUse(
            f"--keys {missing[0]}: it is not a column of both outputs",
            f"Both have {', '.join(shared) or 'no column in common'}.",
        )
    total, written = RowCounts(), None
    sample: list[RowDifference] = []
    for batch in range(run.first, run.last + 1):
        old, new = before.rows.of(batch).plain(), after.rows.of(batch).plain()
        counts, found = compare_rows(batch, old, new, keys, shared)
        total += counts
        if export is not None:
            written = export / _DIFFERENCES
            found = _kept(found, written)
        sample += list(islice(found, max(run.request.limit - len(sample), 0)))
        for _ in found:  # also export the differences that are not shown
            pass
    return CodeComparison(
        public_url(run.checkpoint.path),
        run.first,
        run.last,
        None if judgement is None else judgement.verdict.value,
        judgement is not None and judgement.verdict is Verdict.NEEDS_MIGRATION,
        keys,
        total.equal,
        total.changed,
        total.only_old,
        total.only_new,
        tuple(name for name in before.columns if name not in after.columns),
        tuple(name for name in after.columns if name not in before.columns),
        tuple(sample),
        tuple(name for name, ran in (("old", before), ("new", after)) if ran.has_function),
        None if written is None else str(written),
    )


def _kept(found: Iterator[RowDifference], place: Path) -> Iterator[RowDifference]:
    from floodmark.wire import dumps

    place.parent.mkdir(parents=True, exist_ok=True)
    with place.open("a", encoding="utf-8") as out:
        for one in found:
            out.write(dumps(one, None) + "\n")
            yield one
