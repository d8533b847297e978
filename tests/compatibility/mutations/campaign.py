"""Counts what `check` says of mutations against what Spark then computes."""

from __future__ import annotations

import hashlib
import itertools
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from compatibility.mutations.machine import Emitted, Machine
from compatibility.mutations.mutators import Mutation, mutations
from floodmark.changes.apply import Carrying
from floodmark.changes.in_use import Clock
from floodmark.errors import FloodmarkError
from floodmark.rules.restarts.reason import Judgement, Verdict

# A changed result is said where a rule names the change and says that the past stays as it was.
_SAID_BY = {
    "watermark-delay-changed",
    "watermark-column-changed",
    "limit-changed",
    "source-options-changed",
    "source-columns-changed",
    "output-mode-changed",
    "state-format-pinned",
}
# What a Python function does is named by its function alone.
_SAID_OF_FUNCTIONS = {"functions-changed", "code-changed"}
_PAST_STAYS = (
    "stays in it",
    "not read again",
    "from the next batch on",
    "from now on",
    "not recomputed",
    "not computed again",
    "only later records",
    "brings nothing back",
    "go out once more",
    "lets out none",
    "ignores the new ones",
)


@dataclass(frozen=True)
class Result:
    name: str
    kind: str
    what: str
    harmless: bool
    outcome: str
    """void, right, said, wrong, refused or needless: see `_outcome`."""
    verdict: str = ""
    reasons: tuple[str, ...] = ()
    got: tuple[str, ...] = ()
    wanted: tuple[str, ...] = ()
    failure: str = ""
    migrate: str = ""
    """What `migrate` made of it: right, said, wrong, refused; nothing where it was not tried."""
    migrate_words: str = ""

    @property
    def counts(self) -> bool:
        return self.outcome != "void"

    @property
    def as_json(self) -> dict[str, object]:
        return asdict(self)


def in_order(all_of_them: list[Mutation], seed: int) -> list[Mutation]:
    """The order of the campaign: one of each query in turn, so that all are reached evenly.

    Of a query, in turn: one of the kinds that few queries have, one of any kind, a harmless one.
    """
    drawn = sorted(all_of_them, key=lambda one: _draw(seed, one.name))
    having = Counter(kind for _, kind in {(one.query.name, one.kind) for one in drawn})
    queries: dict[str, list[Mutation]] = {}
    for one in drawn:
        queries.setdefault(one.query.name, []).append(one)
    return _in_turn(
        [_of_query(mine, having, seed) for _, mine in sorted(queries.items())],
    )


def _of_query(mine: list[Mutation], having: Counter[str], seed: int) -> list[Mutation]:
    meant = [one for one in mine if not one.harmless]
    harmless = [one for one in mine if one.harmless]

    def by_chance(kind: str) -> str:
        return _draw(seed, f"{mine[0].query.name} {kind}")

    rare = _by_kind(meant, lambda kind: f"{having[kind]:04} {by_chance(kind)}")
    lanes = [rare, _by_kind(meant, by_chance), _by_kind(harmless, by_chance)]
    return list({one.name: one for one in _in_turn(lanes)}.values())


def _by_kind(mine: list[Mutation], order: Callable[[str], str]) -> list[Mutation]:
    kinds: dict[str, list[Mutation]] = {}
    for one in mine:
        kinds.setdefault(one.kind, []).append(one)
    return _in_turn([kinds[kind] for kind in sorted(kinds, key=order)])


def _in_turn(groups: list[list[Mutation]]) -> list[Mutation]:
    rounds = itertools.zip_longest(*groups)
    return [one for same in rounds for one in same if one is not None]


def _draw(seed: int, name: str) -> str:
    return hashlib.sha256(f"{seed} {name}".encode()).hexdigest()


def selected(seed: int, number: int, part: str) -> list[Mutation]:
    """The first of the campaign, by query, as its old run is made once; `2/3`: the second third."""
    at, parts = (int(one) for one in part.split("/"))
    first = in_order(mutations(), seed)[:number]
    queries = sorted({one.query.name for one in first})
    mine = {name for number, name in enumerate(queries) if number % parts == at - 1}
    return sorted((one for one in first if one.query.name in mine), key=lambda one: one.query.name)


def try_one(
    machine: Machine, mutation: Mutation, *, every: bool = False, migrate: bool = False
) -> Result:
    """Judges a mutation, runs it and names the outcome.

    What `check` does not let through cannot be a wrong yes: it is run only where it is said to
    be harmless, where `every` asks for it, or where `migrate` carries it.
    """
    checkpoint = machine.checkpoint(mutation.query)
    application = machine.application(mutation)
    plain = Result(mutation.name, mutation.kind, mutation.what, mutation.harmless, "void")
    try:
        judgement = machine.judge(mutation, application)
    except FloodmarkError as error:  # Spark does not take the code with any checkpoint
        return replace(plain, failure=error.what)
    found = replace(
        plain,
        outcome="refused",
        verdict=judgement.verdict.value,
        reasons=tuple(
            f"{one.code} {one.rule} {one.verdict.value}: {one.what} {one.why}"
            for one in judgement.reasons
        ),
    )
    if judgement.verdict.is_yes or mutation.harmless or every:
        wanted = machine.truth(mutation)
        if wanted.failure:
            return replace(found, outcome="void", failure=wanted.failure)
        got = machine.carried_on(mutation, application, checkpoint)
        found = replace(
            found,
            outcome=_outcome(mutation, judgement, got, wanted),
            got=got.rows,
            wanted=wanted.rows,
            failure=got.failure,
        )
    if migrate and not judgement.verdict.is_yes:
        return _migrated(machine, mutation, application, found)
    return found


def _outcome(mutation: Mutation, judgement: Judgement, got: Emitted, wanted: Emitted) -> str:
    """`needless` is a no where the results are equal: right for a mutation that only seems so."""
    equal = not got.failure and got.rows == wanted.rows
    if not judgement.verdict.is_yes:
        return "needless" if equal else "refused"
    if equal:
        return "right"
    return "said" if not got.failure and _is_said(mutation, judgement) else "wrong"


def _is_said(mutation: Mutation, judgement: Judgement) -> bool:
    """The verdict is `compatible`, and a reason says what the change leaves as it was."""
    functions = mutation.query.name.startswith("python-")
    rules = _SAID_BY | (_SAID_OF_FUNCTIONS if functions else set())
    return judgement.verdict is Verdict.COMPATIBLE and any(
        one.rule in rules and any(words in f"{one.what} {one.why}" for words in _PAST_STAYS)
        for one in judgement.reasons
    )


def _migrated(machine: Machine, mutation: Mutation, application: Path, found: Result) -> Result:
    """What `migrate` makes of a change that `check` does not let through."""
    from floodmark.api import migrate

    new = machine.place(mutation.query) / "migrated"
    if new.exists():
        shutil.rmtree(new)
    carrying = Carrying(execute=True, clock=Clock(pause=lambda seconds: None))
    old = str(machine.checkpoint(mutation.query))
    try:
        change = migrate(old, str(new), app=str(application), carrying=carrying)
    except FloodmarkError as error:
        return replace(found, migrate="refused", migrate_words=str(error))
    wanted = machine.truth(mutation)
    if wanted.failure:
        return replace(found, outcome="void", failure=wanted.failure)
    got = machine.carried_on(mutation, application, new)
    words = " | ".join(change.plan.notes)
    if not got.failure and got.rows == wanted.rows:
        return replace(found, migrate="right", migrate_words=words)
    is_said = not got.failure and any(one in words for one in _PAST_STAYS)
    return replace(
        found,
        migrate="said" if is_said else "wrong",
        migrate_words=f"{words} {got.failure}",
        got=got.rows,
        wanted=wanted.rows,
    )
