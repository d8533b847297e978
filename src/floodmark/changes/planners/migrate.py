"""Plans `migrate`: a checkpoint for new code, with the state of the old code.

Everything but the state is carried as `upgrade` carries it. Spark itself writes the schemas of
the new code's state; the rows are the old rows, reshaped.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from floodmark.changes.carry.changed_sources import SourceChange, with_sources
from floodmark.changes.carry.needed_state import computed_again, whole_in_flight
from floodmark.changes.carry.origin import Origin
from floodmark.changes.carry.rehome import is_operator_metadata, moved_operator_metadata
from floodmark.changes.carry.resume_point import ResumePoint, UpgradeOptions, choose_resume_point
from floodmark.changes.matching.operators import Matching, MatchOptions, OperatorMatch, match
from floodmark.changes.plan import NEEDED, Plan
from floodmark.changes.plan.steps import Step, rewrite, write
from floodmark.changes.planners.kept_operators import Drawn, Kept
from floodmark.changes.planners.rewritten_state import log_step
from floodmark.changes.planners.state_layout import StateLayout, provider_of
from floodmark.changes.planners.upgrade import plan_upgrade
from floodmark.checkpoint.conf_keys import (
    MERGE_VERSION,
    ROW_CHECKSUMS,
    SHUFFLE_PARTITIONS,
    STATE_CODEC,
    STATE_ENCODING,
)
from floodmark.checkpoint.layout import JOIN_STORES, STARTS, STATE
from floodmark.checkpoint.model import Checkpoint
from floodmark.errors import NotCarried, WrongUse
from floodmark.state.shapes.operators import Reading
from floodmark.state.shapes.schema import PLAIN, render_encoding
from floodmark.statestore.rewrite.target import Part, StateTarget


@dataclass(frozen=True)
class Migration:
    """The options of a migration."""

    match: MatchOptions = field(default_factory=MatchOptions)
    conf: Mapping[str, str] = field(default_factory=dict)
    """Settings that the new checkpoint pins with other values than the old one."""
    pins: Mapping[str, str] = field(default_factory=dict)
    """Settings that the new checkpoint must pin, and the old one does not pin."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """The options that the plan stores: they distinguish this change from another."""
    layout: StateLayout = field(default_factory=StateLayout)
    note: bytes | None = None
    """The start note of the new code: the state now belongs to it."""
    sources: SourceChange | None = None
    """Set where the new code has other sources, or another order of sources."""


def pinned(checkpoint: Checkpoint, kept: Sequence[Kept]) -> dict[str, str]:
    """Return the settings with which Spark outlines the new code and stores its state."""
    if SHUFFLE_PARTITIONS in checkpoint.conf or not kept:
        return dict(checkpoint.conf)
    most = max(one.partitions for one in kept)
    return {**checkpoint.conf, SHUFFLE_PARTITIONS: str(most)}


def plan_migrate(
    origin: Origin,
    new: str,
    request: UpgradeOptions,
    migration: Migration,
    old: Sequence[Kept],
    drawn: Drawn,
) -> Plan:
    _refuse_partitions(migration)
    base = _for_its_sources(plan_upgrade(origin, new, request), migration.sources, origin)
    course = choose_resume_point(origin.checkpoint, request)
    drawn = drawn.over(migration.layout.partitions)
    conf = _new_conf(origin, migration, old)
    had_ids = any(store.at.unique_ids for one in old for store in one.stores)
    has_ids = migration.layout.unique_ids(conf, had_ids)
    matching = match(
        [one.operator for one in old], [one.operator for one in drawn.operators], migration.match
    )
    goals: tuple[StateTarget, ...] = ()
    if course.after is not None:
        goals = tuple(_goals(origin, new, course, migration, matching, old, drawn, conf, has_ids))
        carried = {goal.from_operator for goal in goals}
        stores = [one.stores for one in old if one.operator.number in carried]
        provider, accept = provider_of(conf), migration.match.accept
        migration.layout.require_possible(origin.checkpoint, stores, provider, accept)
    _refuse_made_twice(goals)
    ids = {goal.operator: goal.unique_ids for goal in goals if goal.unique_ids is not None}
    pins = {**migration.pins, **migration.conf, **migration.layout.conf}
    steps = [
        log_step(origin, course, step, pins, ids or None)
        for step in base.steps
        if not step.path.startswith(f"{STATE}/")
    ]
    if migration.note is not None and (goals or migration.sources is not None):
        why = "what this checkpoint was made from, for later checks"
        steps.append(write(f"{STARTS}/1.json", migration.note, why))
    if goals:
        steps += describing(drawn, new, _hadoop_path(origin.checkpoint))
        steps += [rewrite(goal, _why(goal, matching)) for goal in goals]
    return replace(
        base,
        verb="migrate",
        title=base.title.replace(
            "A new checkpoint", f"A checkpoint for the new code{migration.layout.words}"
        ),
        steps=tuple(steps),
        # `upgrade` asks to accept these; here they are only notes: `migrate` has its own names.
        options={key: one for key, one in base.options.items() if key != NEEDED}
        | dict(migration.options),
        notes=(
            *matching.notes,
            *migration.layout.notes(conf, has_ids, had_ids),
            *base.notes,
            *(computed_again(course.in_flight) if ids or had_ids else ()),
        ),
    )


def _for_its_sources(base: Plan, sources: SourceChange | None, origin: Origin) -> Plan:
    if sources is None:
        return base
    return replace(
        base,
        steps=tuple(with_sources(base.steps, sources, origin.read)),
        options={**base.options, **sources.options},
        notes=(*sources.notes, *base.notes),
    )


def _refuse_partitions(migration: Migration) -> None:
    if SHUFFLE_PARTITIONS in migration.conf:
        raise WrongUse(
            f"--conf {SHUFFLE_PARTITIONS}: the session does not decide how many partitions "
            "the new checkpoint has",
            do="Use migrate's own option: --partitions N",
        )


def _refuse_made_twice(goals: Sequence[StateTarget]) -> None:
    for goal in goals:
        if goal.in_flight is not None and any(part.given for part in goal.parts):
            raise NotCarried(
                f"batch {goal.in_flight} is in flight, and has left a state of its own",
                "A function makes the rows of one batch; a sink that has this one would skip it.",
                "Let the old code finish the batch, or go back to the last commit: "
                "--drop-in-flight.",
            )


def _why(goal: StateTarget, matching: Matching) -> str:
    found = next(one for one in matching.operators if one.new.number == goal.operator)
    if found.old is None:
        return f"{found.new.words}, new and empty"
    return f"the state after batch {goal.batch}, in the new code's columns"


def _hadoop_path(checkpoint: Checkpoint) -> str | None:
    """Return a path as Spark writes it for this storage; the outline was on a local disk."""
    paths = (
        path
        for operator in checkpoint.operators.values()
        for store in operator.stores
        for path in store.schema_paths
    )
    return next(paths, None)


def describing(drawn: Drawn, new: str, like: str | None = None) -> Iterator[Step]:
    for path, data in sorted(drawn.files.items()):
        content = data
        if is_operator_metadata(path):
            content = moved_operator_metadata(data, new, like)
        yield write(path, content, "what the new code's rows look like, drawn by Spark")


def _new_conf(origin: Origin, migration: Migration, old: Sequence[Kept]) -> dict[str, str]:
    said = {**migration.pins, **migration.conf, **migration.layout.conf}
    return {**pinned(origin.checkpoint, old), **said}


def _goals(
    origin: Origin,
    new: str,
    course: ResumePoint,
    migration: Migration,
    matching: Matching,
    old: Sequence[Kept],
    drawn: Drawn,
    conf: Mapping[str, str],
    has_ids: bool,
) -> Iterator[StateTarget]:
    assert course.after is not None
    assert course.number is not None
    sources = {one.operator.number: one for one in old}
    again = None
    if not has_ids:
        again = whole_in_flight(origin.checkpoint, course.in_flight, origin.read)
    for kept, found in zip(drawn.operators, matching.operators, strict=True):
        theirs = sources[found.old.number] if found.old is not None else None
        goal = goal_of(kept, conf, course.after, course.number + 1)
        yield replace(
            goal,
            from_operator=found.old.number if found.old is not None else None,
            parts=_parts(goal.parts, found, theirs, migration.match.given),
            unique_ids=unique_ids_of(new, kept, course.number + 1) if has_ids else None,
            in_flight=again,
            zip_version=drawn.zip_version if has_ids else 1,
        )


def goal_of(kept: Kept, conf: Mapping[str, str], batch: int, version: int) -> StateTarget:
    """Return the empty state of an operator of the outline."""
    return StateTarget(
        kept.operator.number,
        None,
        batch,
        version,
        kept.partitions,
        provider_of(conf),
        tuple(_part(reading) for reading in kept.readings),
        conf.get(STATE_CODEC, "lz4"),
        conf.get(ROW_CHECKSUMS, "false").lower() == "true",
        conf.get(STATE_ENCODING, "unsaferow").lower() == "avro",
        "" if conf.get(MERGE_VERSION, "1") == "2" else ",",
    )


def _part(reading: Reading) -> Part:
    schema = reading.schema
    assert schema is not None
    return Part(
        reading.folder,
        reading.family,
        reading.shape.value,
        schema.key_json,
        schema.value_json,
        schema.encoding_json or render_encoding(PLAIN),
        schema.key_id or 0,
        schema.value_id or 0,
    )


def _parts(
    parts: tuple[Part, ...],
    found: OperatorMatch,
    old: Kept | None,
    given: frozenset[tuple[int, str]],
) -> tuple[Part, ...]:
    matched = {one.store: one for one in found.stores}
    names = {(r.family or r.folder): r.name for r in old.readings} if old else {}
    made = []
    for part in parts:
        mine = matched.get(part.name)
        is_given = (found.new.number, part.name) in given or (mine is not None and mine.by_function)
        recipe = mine.recipe if mine is not None else None
        source = names.get(part.name) if mine is not None else None
        made.append(replace(part, recipe=recipe, source=source, given=is_given))
    return tuple(made)


def unique_ids_of(new: str, kept: Kept, version: int) -> tuple[tuple[str, ...], ...]:
    """Return unique ids for every store; planning the same change again gives the same ids."""
    operator = kept.operator.number
    stores = tuple(dict.fromkeys(reading.folder for reading in kept.readings))
    names = JOIN_STORES if set(JOIN_STORES) <= set(stores) else ("default",)

    def unique(partition: int, store: str) -> str:
        return str(
            uuid.uuid5(uuid.NAMESPACE_URL, f"{new} {operator} {partition} {store} {version}")
        )

    return tuple(
        tuple(unique(partition, store) for store in names) for partition in range(kept.partitions)
    )
