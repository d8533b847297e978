"""Defines the verdict on new code for an old checkpoint, and the reasons for it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum

from floodmark.rules.finding import Rule
from floodmark.screen import ShownInALine, fitted, table_html
from floodmark.secret_text import redacted


class Verdict(str, Enum):
    """Whether code can go on with a checkpoint."""

    SAME = "same"
    """Nothing that matters to the checkpoint has changed."""
    COMPATIBLE = "compatible"
    """The checkpoint can be used as it is."""
    UNKNOWN = "unknown"
    """floodmark cannot decide it."""
    NEEDS_MIGRATION = "needs-migration"
    """The state must be carried over."""
    NEEDS_NEW_CHECKPOINT = "needs-new-checkpoint"
    """The stream can go on from its positions, with an empty state."""

    @property
    def is_yes(self) -> bool:
        return self in (Verdict.SAME, Verdict.COMPATIBLE)


_ORDER = list(Verdict)


@dataclass(frozen=True, repr=False)
class Reason(ShownInALine):
    """One difference between the code and the checkpoint, and what it leads to."""

    code: str
    """The rule's code: `floodmark explain` takes it."""
    rule: str
    """The rule's name: `--allow` and `floodmark explain` take it."""
    verdict: Verdict
    """The verdict if this were the only change."""
    what: str
    """What differs."""
    where: str
    """The part of the query that differs."""
    why: str
    """What Spark does about it."""
    do: str
    """What to do next."""
    silent: bool = False
    """Whether Spark starts without a warning."""
    migrate: tuple[str, ...] | None = None
    """The options for `floodmark migrate` to carry this change; None if it cannot."""

    @property
    def is_refused(self) -> bool:
        """Whether Spark itself does not start, or fails in its first batch."""
        return not self.verdict.is_yes and not self.silent


@dataclass(frozen=True)
class Judgement:
    """The answer of `check`."""

    verdict: Verdict
    """Whether the new code may use this checkpoint, and if not, what it needs."""
    decided_by: str
    """`rules` or `rehearsal`."""
    reasons: tuple[Reason, ...]
    """The differences, each with its own verdict."""
    not_compared: tuple[str, ...] = ()
    """What was not compared, because neither the checkpoint nor a note has it."""
    command: str | None = None
    """The command that carries the state over, if that is the verdict."""
    then: str | None = None
    """What to do after that command."""

    def __repr__(self) -> str:
        said = [f"{self.verdict.value}, by {self.decided_by}"]
        for one in self.reasons:
            said += [f"{one.code} {one.rule}: {one.what}", f"  {one.do}"]
        return fitted(said)

    def _repr_html_(self) -> str:
        return table_html(
            f"{self.verdict.value}, by {self.decided_by}",
            ("verdict", "rule", "what", "why", "do"),
            (
                (one.verdict.value, f"{one.code} {one.rule}", one.what, one.why, one.do)
                for one in self.reasons
            ),
            *(f"Not compared: {words}" for words in self.not_compared),
            self.command or "",
            self.then or "",
        )


def reason(
    rule: Rule,
    verdict: Verdict,
    what: str,
    where: str,
    *,
    why: str | None = None,
    do: str | None = None,
    silent: bool = False,
    migrate: tuple[str, ...] | None = (),
) -> Reason:
    told = rule.restart if why is None else redacted(why)
    told_do = rule.instead if do is None else redacted(do)
    if verdict is not Verdict.NEEDS_MIGRATION and not migrate:
        migrate = None
    return Reason(
        rule.code, rule.name, verdict, redacted(what), where, told, told_do, silent, migrate
    )


def accepted(found: Reason) -> Reason:
    """Return the reason as compatible if the user has accepted it."""
    if found.verdict.is_yes or not found.silent:
        return found
    return replace(found, verdict=Verdict.COMPATIBLE, do="Accepted by name.")


def worst(reasons: Iterable[Reason]) -> Verdict:
    """Return the worst verdict: it counts for all changes together."""
    return max((one.verdict for one in reasons), key=_ORDER.index, default=Verdict.SAME)


def in_order(reasons: Iterable[Reason]) -> tuple[Reason, ...]:
    return tuple(sorted(reasons, key=lambda one: (-_ORDER.index(one.verdict), one.code, one.where)))
