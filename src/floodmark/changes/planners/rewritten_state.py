"""Plans a new checkpoint whose state is rewritten, for `repartition` and `convert`.

They change the settings, the commit and each operator's state. The identity, the numbers, the
sources and the batch in flight are carried as `upgrade` carries them.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from floodmark.changes.carry.needed_state import computed_again, needed_state, whole_in_flight
from floodmark.changes.carry.origin import Origin
from floodmark.changes.carry.resume_point import ResumePoint, UpgradeOptions, choose_resume_point
from floodmark.changes.plan import Plan
from floodmark.changes.plan.steps import Step, content_of, rewrite, write
from floodmark.changes.planners.upgrade import plan_upgrade
from floodmark.checkpoint.commits import StateIds, parse_commit, render_commit, with_state_ids
from floodmark.checkpoint.conf_keys import STATE_CODEC
from floodmark.checkpoint.layout import (
    COMMITS,
    JOIN_STORES,
    OFFSETS,
    OPERATOR_METADATA,
    STATE,
    STATE_SCHEMA,
)
from floodmark.checkpoint.metadata import with_partitions
from floodmark.checkpoint.offsets import parse_offsets, render_offsets, with_conf
from floodmark.errors import NoAnswer
from floodmark.statestore.rewrite.operator_stores import (
    StoreToRewrite,
    families_of,
    has_zips_of_spark_4_0,
    stores_of,
)
from floodmark.statestore.rewrite.target import Part, StateTarget


@dataclass(frozen=True)
class StateRewrite:
    """Describes what changes in the new checkpoint."""

    verb: str
    title: str
    options: Mapping[str, object]
    conf: Mapping[str, str]
    """The new values of settings that the checkpoint pins."""
    provider: str
    partitions: int | None
    """None: each operator keeps its number of partitions."""
    unique_ids: bool
    why: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class OperatorToRewrite:
    number: int
    stores: tuple[StoreToRewrite, ...]
    batch: int

    @property
    def is_keyless(self) -> bool:
        return all(store.is_keyless for store in self.stores)


def operators_of(origin: Origin, course: ResumePoint) -> tuple[OperatorToRewrite, ...]:
    """Return every operator's state at the batch after which the new stream begins."""
    checkpoint = origin.checkpoint
    if not checkpoint.state_operators:
        raise NoAnswer(
            f"{checkpoint.path} has no state",
            "Its query keeps no state, so there is nothing to rewrite.",
            "`floodmark upgrade` or `floodmark copy` moves it.",
        )
    if course.after is None:
        raise NoAnswer(
            f"{checkpoint.path}: no batch is committed, so there is no state to rewrite",
            "A batch that is not committed may have written only a part of its state.",
            "Start the query once, or begin with an empty checkpoint.",
        )
    needed_state(checkpoint, course.after, origin.read)  # it must be whole
    return tuple(
        OperatorToRewrite(
            one.operator,
            stores_of(origin.files, checkpoint, one.operator, course.after),
            course.after,
        )
        for one in checkpoint.state_operators
    )


def course_of(origin: Origin) -> ResumePoint:
    return choose_resume_point(origin.checkpoint, UpgradeOptions())


def plan_rewritten(
    origin: Origin,
    new: str,
    course: ResumePoint,
    operators: tuple[OperatorToRewrite, ...],
    turn: StateRewrite,
) -> Plan:
    anew = {one.number: one for one in operators if turn.partitions is None or not one.is_keyless}
    base = plan_upgrade(origin, new, UpgradeOptions())
    ids = _ids(origin, new, course, turn, operators, anew) if turn.unique_ids else None
    steps = [
        step for before in base.steps for step in _carried(origin, course, turn, before, anew, ids)
    ]
    steps += _rewrites(origin, course, turn, anew.values(), ids)
    had_ids = any(store.at.unique_ids for one in operators for store in one.stores)
    again = computed_again(course.in_flight) if ids or had_ids else ()
    return replace(
        base,
        verb=turn.verb,
        title=turn.title,
        steps=tuple(steps),
        options=turn.options,
        notes=(*turn.notes, *base.notes, *again),
    )


def _carried(
    origin: Origin,
    course: ResumePoint,
    turn: StateRewrite,
    step: Step,
    anew: Mapping[int, OperatorToRewrite],
    ids: StateIds | None,
) -> Iterator[Step]:
    folder, _, rest = step.path.partition("/")
    if folder == STATE:
        yield from _described(origin, turn, step, rest.split("/"), anew)
    else:
        yield log_step(origin, course, step, turn.conf, ids)


def log_step(
    origin: Origin, course: ResumePoint, step: Step, conf: Mapping[str, str], ids: StateIds | None
) -> Step:
    """Return a log entry with other settings and with the unique ids of the new state."""
    folder = step.path.partition("/")[0]
    if folder == OFFSETS and conf:
        entry = with_conf(parse_offsets(content_of(step, origin.read)), conf)
        return write(step.path, render_offsets(entry), f"{step.why}, with the new settings")
    return _commit(origin, course, step, ids) if folder == COMMITS else step


def _commit(origin: Origin, course: ResumePoint, step: Step, ids: StateIds | None) -> Step:
    entry = parse_commit(content_of(step, origin.read))
    mine: StateIds | None = ids
    if ids is not None and step.path != f"{COMMITS}/{course.number}":
        mine = {}  # no state of that batch is carried over
    if mine is None and not entry.state_unique_ids and entry.version != 2:
        return step
    words = "with the ids of the new state" if mine else "without unique ids"
    return write(step.path, render_commit(with_state_ids(entry, mine)), f"{step.why}, {words}")


def _described(
    origin: Origin,
    turn: StateRewrite,
    step: Step,
    parts: list[str],
    anew: Mapping[int, OperatorToRewrite],
) -> Iterator[Step]:
    """Yield descriptions of the new state; `parts` is the path below state/."""
    if parts[1] == OPERATOR_METADATA:
        if turn.partitions is None:
            yield step
        else:
            written = with_partitions(content_of(step, origin.read), turn.partitions)
            yield write(step.path, written, f"{turn.partitions} partitions")
    elif OPERATOR_METADATA in parts or parts[1] == STATE_SCHEMA or int(parts[0]) not in anew:
        yield step


def _ids(
    origin: Origin,
    new: str,
    course: ResumePoint,
    turn: StateRewrite,
    operators: Iterable[OperatorToRewrite],
    anew: Mapping[int, OperatorToRewrite],
) -> StateIds:
    """Return unique ids for every store; planning the same change again gives the same ids."""
    assert course.after is not None
    commit = origin.checkpoint.commits.get(course.after)
    known = commit.state_unique_ids if commit else {}
    ids: dict[int, tuple[tuple[str, ...], ...]] = {}
    for operator in operators:
        if operator.number not in anew:
            ids[operator.number] = known[operator.number]
            continue
        count = 1 if operator.is_keyless else turn.partitions or _count(operator)
        names = [store.name for store in operator.stores]
        ordered = [name for name in JOIN_STORES if name in names] or names
        ids[operator.number] = tuple(
            tuple(
                str(
                    uuid.uuid5(
                        uuid.NAMESPACE_URL,
                        f"{new} {origin.standing.digest} {turn.verb} {dict(turn.options)} "
                        f"{operator.number} {partition} {name}",
                    )
                )
                for name in ordered
            )
            for partition in range(count)
        )
    return ids


def _count(operator: OperatorToRewrite) -> int:
    return len(operator.stores[0].partitions)


def _rewrites(
    origin: Origin,
    course: ResumePoint,
    turn: StateRewrite,
    operators: Iterable[OperatorToRewrite],
    ids: StateIds | None,
) -> Iterator[Step]:
    assert course.number is not None
    # With unique ids, nothing names the state of a batch that is not committed.
    again = None
    if not turn.unique_ids:
        again = whole_in_flight(origin.checkpoint, course.in_flight, origin.read)
    for operator in operators:
        words = f"the state after batch {operator.batch}, {turn.why}"
        if again is not None:
            words += f"; what batch {again} has written, for a sink that does not take it again"
        yield rewrite(_target(origin, course, turn, operator, ids, again), words)


def _target(
    origin: Origin,
    course: ResumePoint,
    turn: StateRewrite,
    operator: OperatorToRewrite,
    ids: StateIds | None,
    again: int | None,
) -> StateTarget:
    assert course.number is not None
    first = operator.stores[0]
    entry = origin.checkpoint.offsets.get(operator.batch)
    conf = entry.metadata.conf if entry and entry.metadata else {}
    families = [families_of(store) for store in operator.stores]
    return StateTarget(
        operator.number,
        operator.number,
        operator.batch,
        course.number + 1,
        1 if operator.is_keyless else turn.partitions or _count(operator),
        turn.provider,
        tuple(Part(store.name, kept=True) for store in operator.stores),
        conf.get(STATE_CODEC, "lz4"),
        first.at.row_checksums,
        unique_ids=ids[operator.number] if ids else None,
        in_flight=again,
        zip_version=2 if ids and has_zips_of_spark_4_0(first) else 1,
        numbers={name: number for one in families for name, number in one.items()},
    )
