"""Builds a migration's plan and its rows from new code and an old checkpoint."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from floodmark.changes.apply import Carrying
from floodmark.changes.carry.origin import Origin
from floodmark.changes.carry.resume_point import UpgradeOptions, choose_resume_point
from floodmark.changes.execute import PlanPlaces
from floodmark.changes.matching.aggregates import aggregations
from floodmark.changes.matching.fields import ColumnOptions
from floodmark.changes.matching.operators import MatchOptions
from floodmark.changes.matching.shapes import OperatorShape
from floodmark.changes.plan import Plan
from floodmark.changes.plan.steps import RewriteState
from floodmark.changes.planners.kept_operators import Drawn, Kept, kept_operators
from floodmark.changes.planners.migrate import Migration, pinned, plan_migrate
from floodmark.changes.planners.state_layout import StateLayout
from floodmark.changes.state_rewriter import StateRewriter
from floodmark.checkpoint.conf_keys import SHUFFLE_PARTITIONS
from floodmark.checkpoint.plan.tree import Expression, PlanTree, hidden_expression
from floodmark.checkpoint.source_kinds import with_code_kinds
from floodmark.checkpoint.start_note import LastStart, last_start
from floodmark.diagnosis.held import held_operators, seen_files, seen_windows
from floodmark.engine.app.options import ScriptOptions
from floodmark.engine.code.check import described_code, old_code
from floodmark.engine.code.drawing import ApplicationCode, Drawing, drawing
from floodmark.engine.code.source_tables import read_tables
from floodmark.engine.start.notes import note_of
from floodmark.engine.state.frame import reshaped_frame, state_frame
from floodmark.engine.state.made_rows import Made, call, check_rows, fitted, rows_of, spool
from floodmark.engine.state.migration_file import MigrationCode, load_migration, read_migration
from floodmark.engine.state.new_code_sources import (
    SourceRequest,
    settled,
    source_change,
    told_sources,
)
from floodmark.engine.state.spark_rewriter import SparkRewriter
from floodmark.engine.state.start_option import read_starts
from floodmark.errors import NoAnswer, NotCarried, WrongUse
from floodmark.redaction import Redaction
from floodmark.rules.restarts.comparison import Comparison
from floodmark.rules.restarts.not_carried import KEYS, unaccounted
from floodmark.rules.restarts.source_lists import seen_by_place
from floodmark.rules.restarts.verdict import judge_restart, starts_nowhere
from floodmark.state.shapes.operators import Reading, Shape
from floodmark.statestore.open import open_state
from floodmark.statestore.rewrite.target import Part, StateTarget
from floodmark.storage.last_start import acting_note

_UNNOTED = "last-start-unknown"


@dataclass(frozen=True)
class MigrateOptions:
    app: str
    with_file: str | None
    from_app: str | None
    told: ColumnOptions
    merge: Mapping[str, str]
    accept: frozenset[str]
    conf: Mapping[str, str]
    """Settings for the new checkpoint that replace those that the old one pins."""
    settings: Mapping[str, str]
    scratch: str | None
    session: Mapping[str, str] = field(default_factory=dict)
    """Settings of the Spark session."""
    on_spark: bool = False
    """True where the executors rewrite the state, and not this process."""

    script: ScriptOptions = field(default_factory=ScriptOptions)
    old_ref: str | None = None
    layout: StateLayout = field(default_factory=StateLayout)
    start: tuple[str, ...] = ()
    """The positions where new sources begin, as SOURCE=WHERE."""

    def code(self, *checkpoints: str) -> ApplicationCode:
        return ApplicationCode(
            self.app, self.settings, self.session, script=self.script, checkpoints=checkpoints
        )

    def options(self, redaction: Redaction) -> dict[str, object]:
        """Return the request for the plan; a repeated request gives the same."""
        return {
            "app": self.app,
            "with": self.with_file,
            "from_app": self.from_app,
            "rename": dict(self.told.renames),
            "default": dict(self.told.defaults),
            "merge": dict(self.merge),
            "accept": sorted(self.accept),
            "conf": redaction.conf(self.conf),
            "set": redaction.parameters(self.settings),
            **self.script.shown(),
            **({"old_ref": self.old_ref} if self.old_ref else {}),
            **self.layout.options,
        }


@dataclass
class MigrationPlan:
    asked: MigrateOptions
    new: str
    request: UpgradeOptions
    carrying: Carrying
    rewriter: StateRewriter = field(default_factory=StateRewriter)

    def require(self, step: RewriteState, places: PlanPlaces) -> None:
        self.rewriter.require(step, places)

    def rewrite(self, step: RewriteState, places: PlanPlaces) -> None:
        self.rewriter.rewrite(step, places)

    def check(self, step: RewriteState, places: PlanPlaces) -> None:
        self.rewriter.check(step, places)

    def _places(self, origin: Origin) -> tuple[str, ...]:
        """Return the checkpoints that the code may name; messages name the first."""
        original = self.carrying.original
        return (*(() if original is None else (original,)), self.new, origin.location)

    def plan(self, origin: Origin, stack: contextlib.ExitStack) -> Plan:
        """Plan the migration; rows of a user's function are made and checked first."""
        asked = self.asked
        if asked.with_file:
            read_migration(asked.with_file)  # reports a missing file before Spark starts
        bare = old_operators(origin, self.request, None)
        # A schema does not depend on the number of partitions: the rows are spread afterwards.
        layout = {k: v for k, v in asked.layout.conf.items() if k != SHUFFLE_PARTITIONS}
        conf, before = {**asked.conf, **layout}, pinned(origin.checkpoint, bare)
        noted = last_start(acting_note(origin.files, origin.checkpoint.committed_batch))
        # The redaction is the same each time, and that of the note with which the plan compares.
        redaction = noted.redaction if noted else Redaction.about(f"{origin.location} {self.new}")
        code_drawn = drawing(asked.code(*self._places(origin)), conf, redaction, before)
        found = stack.enter_context(code_drawn)
        last = noted
        with old_code(asked.app, asked.from_app, asked.old_ref) as given:
            if given is not None:
                last = described_code(
                    given,
                    asked.settings,
                    asked.session,
                    asked.script,
                    # It runs with the arguments of the new code, and may name the new place.
                    self._places(origin),
                    redaction,
                ).last_start
        told = with_code_kinds(origin.checkpoint, [one.kind for one in found.sources])
        origin = replace(origin, checkpoint=told)
        comparison = compared(origin, found, last)
        starts = read_starts(asked.start, found, comparison.held_sources)
        comparison = told_sources(comparison, starts, asked.accept)
        course = choose_resume_point(origin.checkpoint, self.request)
        sources = source_change(
            SourceRequest(origin, comparison, found, course, starts, asked.accept)
        )
        if sources is not None:
            comparison = settled(comparison, starts)
            last = comparison.last
            found = replace(found, drawn=over_sources(found.drawn, comparison.new.tree))
        old = old_operators(origin, self.request, last.tree if last is not None else None)
        salt = last.tree.salt if last is not None and last.tree is not None else None
        if salt is not None:
            found = replace(found, drawn=hidden(found.drawn, salt))
        if asked.on_spark:
            self.rewriter = SparkRewriter(spark=found.spark, storage=self.carrying.storage)
        code = load_migration(asked.with_file, found.drawn) if asked.with_file else None
        request = _match_options(asked, code)
        _refuse_unaccounted(comparison, asked, request)
        options = {**asked.options(redaction), "with": code.digest if code else None}
        note = _note(origin, asked, found, self.request, redaction)
        pins = _pins(origin, found, old, sources is not None)
        migration = Migration(request, asked.conf, pins, options, asked.layout, note, sources)
        plan = plan_migrate(origin, self.new, self.request, migration, old, found.drawn)
        if code is not None:
            self._make_rows(origin, plan, found, code, stack)
        return plan

    def _make_rows(
        self,
        origin: Origin,
        plan: Plan,
        found: Drawing,
        code: MigrationCode,
        stack: contextlib.ExitStack,
    ) -> None:
        goals = [step.target for step in plan.steps if isinstance(step, RewriteState)]
        if not any(part.given for goal in goals for part in goal.parts):
            return
        places: dict[tuple[int, str], str] = {}
        scratch = scratch_place(found, self.asked.scratch, stack)
        for goal in goals:
            for part in goal.parts:
                if not part.given:
                    continue
                made = self._made(origin, found, code, goal, part)
                if not self.carrying.execute:
                    fitted(made)  # check at least the columns before anybody gives --execute
                    continue
                place = f"{scratch}/{goal.operator}-{part.name}"
                check_rows(made, spool(found.spark, made, place))
                places[goal.operator, part.name] = place
        self.rewriter.given = lambda operator: rows_of(places, operator)

    def _made(
        self, origin: Origin, found: Drawing, code: MigrationCode, goal: StateTarget, part: Part
    ) -> Made:
        if goal.from_operator is None or part.source is None:
            raise WrongUse(
                f"{code.path}: operator {goal.operator} is new, so it has no old rows",
                "A function makes new rows from old ones.",
                "Leave the function out: the operator starts empty.",
            )
        before = state_frame(
            found.spark,
            origin.location,
            goal.from_operator,
            part.source,
            goal.batch,
            storage=self.carrying.storage,
            as_given=True,
        ).select("key", "value")
        where = f"{code.path}, operator {goal.operator}"
        function = code.functions.get((goal.operator, part.name))
        if function is not None:
            rows = call(function, before, where)
        else:
            rows = reshaped_frame(before, part, where)
        merge = code.merge_of(goal.operator) if part.reading.shape is Shape.PAIRS else None
        old = _old_reading(origin, goal, part)
        return Made(rows, part, goal.partitions, where, before, old, merge, self.asked.accept)


def _refuse_unaccounted(
    comparison: Comparison, asked: MigrateOptions, request: MatchOptions
) -> None:
    """Refuse changes that `check` does not allow and no matching of columns resolves."""
    for reason in judge_restart(comparison).reasons:
        if starts_nowhere(reason):
            raise NotCarried(f"{asked.app}: {reason.what}", reason.why, reason.do)
    told, given = asked.told, bool(request.given)
    for one in unaccounted(comparison, told.renames, given, told.defaults):
        if one.rule not in asked.accept:
            raise NotCarried(
                f"{one.what} ({one.where})",
                "The old code made this state; the new code would give it another meaning.",
                one.do or _way_out(one.rule),
            )


def _way_out(rule: str) -> str:
    accepted = f"If the state may stay as it is: --accept {rule}."
    if rule == _UNNOTED:
        return f"Give the code that made the checkpoint: --old OLD.py. {accepted}"
    if rule == KEYS:
        return f"--with MIGRATION.py makes new keys from the old ones. {accepted}"
    empty = "`floodmark upgrade CP NEW --without-state`"
    return f"{accepted} Otherwise begin with an empty state: {empty}."


def _match_options(asked: MigrateOptions, code: MigrationCode | None) -> MatchOptions:
    if code is None:
        return MatchOptions(asked.told, asked.accept, asked.merge)
    if code.merges and (asked.merge or code.table):
        raise WrongUse(
            f"{code.path}: merge is a function, and --merge gives rules as well",
            "Both say how rows whose keys become equal are merged.",
            "Leave out --merge, or the function.",
        )
    return MatchOptions(
        asked.told,
        asked.accept,
        {**(code.table or {}), **asked.merge},
        frozenset(code.functions),
        frozenset(code.merges),
    )


def _old_reading(origin: Origin, goal: StateTarget, part: Part) -> Reading:
    assert goal.from_operator is not None
    view = open_state(origin.files, origin.checkpoint, goal.from_operator, part.source, goal.batch)
    return view.reading


def compared(origin: Origin, found: Drawing, last: LastStart | None) -> Comparison:
    """Compare the old checkpoint and the new code, as `check` does."""
    checkpoint = origin.checkpoint
    held = held_operators(origin.files, checkpoint)
    known = last is not None and last.tree is not None
    return Comparison(
        checkpoint,
        held,
        found.outline,
        last,
        seen=seen_by_place(checkpoint, seen_files(origin.files, checkpoint), found.folders),
        windows={} if known else seen_windows(origin.files, checkpoint, held),
        tables=read_tables(found.spark, found.sources, last),
    )


def over_sources(drawn: Drawn, tree: PlanTree) -> Drawn:
    """Return the new code's functions for the sources that stay, to compare them with the old."""
    functions = aggregations(tree)
    mine = [one for one in drawn.operators if one.operator.functions is not None]
    if len(functions) != len(mine):
        return drawn
    known = dict(zip((one.operator.number for one in mine), functions, strict=True))
    return _with_functions(drawn, lambda one: known[one.number])


def hidden(drawn: Drawn, salt: str) -> Drawn:
    """Return the new code's functions as a note stores them, with texts replaced by hashes."""

    return _with_functions(
        drawn, lambda one: tuple(hidden_expression(f, salt) for f in one.functions or ())
    )


def _with_functions(
    drawn: Drawn, functions_of: Callable[[OperatorShape], tuple[Expression, ...]]
) -> Drawn:
    def operator(one: OperatorShape) -> OperatorShape:
        if one.functions is None:
            return one
        functions = functions_of(one)
        aggregates = one.aggregates and tuple(
            replace(a, expression=f) for a, f in zip(one.aggregates, functions, strict=True)
        )
        return replace(one, functions=functions, aggregates=aggregates)

    kept = tuple(replace(one, operator=operator(one.operator)) for one in drawn.operators)
    return replace(drawn, operators=kept)


def _note(
    origin: Origin,
    asked: MigrateOptions,
    found: Drawing,
    request: UpgradeOptions,
    redaction: Redaction,
) -> bytes | None:
    """Return a note of the code for the new checkpoint; `check NEW` and the next change read it."""
    number = choose_resume_point(origin.checkpoint, request).number
    return None if number is None else note_of(found.outline, asked.app, number, redaction)


def old_operators(
    origin: Origin, request: UpgradeOptions, tree: PlanTree | None
) -> tuple[Kept, ...]:
    course = choose_resume_point(origin.checkpoint, request)
    if course.after is None:
        raise NoAnswer(
            f"{origin.location}: no batch is committed, so there is no state to carry over",
            do="`floodmark upgrade CP NEW --without-state`, or start the new code from the "
            "beginning.",
        )
    return kept_operators(origin.files, origin.checkpoint, course.after, tree)


def _pins(
    origin: Origin, found: Drawing, old: tuple[Kept, ...], other_sources: bool
) -> dict[str, str]:
    """Return the pinned partitions; a query without state may not have pinned them before."""
    if not old and not found.drawn.operators and not other_sources:
        raise NoAnswer(
            f"{origin.location} has no state, and the new code keeps none",
            "There is nothing to carry over.",
            "`floodmark upgrade` makes a checkpoint for the new code.",
        )
    partitions = found.outline.pinned.get(SHUFFLE_PARTITIONS)
    if SHUFFLE_PARTITIONS in origin.checkpoint.conf or partitions is None:
        return {}
    return {SHUFFLE_PARTITIONS: partitions}


def drawn_beside(
    origin: Origin, code: ApplicationCode, conf: Mapping[str, str]
) -> tuple[tuple[Kept, ...], Drawn]:
    """Return the old operators and the new ones, for a skeleton."""
    old = old_operators(origin, UpgradeOptions(), None)
    with drawing(code, conf, pinned=pinned(origin.checkpoint, old)) as found:
        return old, found.drawn


def scratch_place(found: Drawing, scratch: str | None, stack: contextlib.ExitStack) -> str:
    """Return a folder that executors write and this process reads."""
    if scratch is not None:
        return scratch.rstrip("/")
    if not str(found.spark.sparkContext.master).startswith("local"):
        raise WrongUse(
            "the rows need a folder that every executor reaches",
            f"Spark runs on {found.spark.sparkContext.master}, not on this machine.",
            "Name a folder of shared storage: --scratch URL",
        )
    return stack.enter_context(tempfile.TemporaryDirectory(prefix="floodmark-made-"))
