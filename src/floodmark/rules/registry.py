"""Finds the rules by the files of their families' folders, on first use.

To add a rule, add a file: there is no list to keep.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

from floodmark.checkpoint.evidence import Evidence
from floodmark.checkpoint.layout import COMMITS, OFFSETS, STATE, main_file
from floodmark.errors import WrongUse
from floodmark.rules.finding import Finding, Rule, in_order
from floodmark.rules.mend import Mend
from floodmark.rules.start_inputs.situation import Situation

FAMILIES = ("checkpoint", "pipeline", "compatibility", "start")
_UNEXAMINED = "unexamined-part"
_FORMER_NAMES = {
    "local-checkpoint-on-cluster": "checkpoint-on-local-disk",
    "unreplayable-source": "non-replayable-source",
}


class Known(NamedTuple):
    rule: Rule
    family: str
    check: Callable[[Any], Iterator[Any]]
    """Yields findings; compatibility rules yield reasons."""
    together: bool
    """Lint: whether it checks all files together."""
    check_start: Callable[[Situation], Iterator[Finding]] | None = None
    """The check of a query before it starts, if the rule has one."""
    check_starts: Callable[[Sequence[tuple[str, str, str]]], Iterator[Finding]] | None = None
    """The check of all pipelines of a run together, if the rule has one."""


@cache
def rules_of(family: str) -> tuple[Known, ...]:
    package = importlib.import_module(f"floodmark.rules.{family}")
    found = []
    for module in pkgutil.iter_modules(package.__path__):
        loaded = importlib.import_module(f"{package.__name__}.{module.name}")
        together = hasattr(loaded, "check_together")
        check = loaded.check_together if together else loaded.check
        found.append(
            Known(
                loaded.RULE,
                family,
                check,
                together,
                check if family == "start" else getattr(loaded, "check_start", None),
                getattr(loaded, "check_starts", None),
            )
        )
    return tuple(sorted(found, key=lambda known: known.rule.code))


def all_rules() -> tuple[Known, ...]:
    return tuple(known for family in FAMILIES for known in rules_of(family))


def start_checks() -> tuple[Callable[[Situation], Iterator[Finding]], ...]:
    """Return the checks of a query before it starts, from every family."""
    return tuple(known.check_start for known in all_rules() if known.check_start is not None)


def names_to_allow() -> dict[str, str]:
    """Return each name that `--allow` accepts → the rule's name; includes former names."""
    names = {
        known.rule.name
        for known in all_rules()
        if known.check_start or known.check_starts or known.family == "compatibility"
    }
    return {name: name for name in sorted(names)} | _FORMER_NAMES


def examine(evidence: Evidence) -> tuple[Finding, ...]:
    """Return every finding of every doctor's rule; no rule stops another."""
    unexamined = {item.path for item in evidence.checkpoint.unexamined}
    return in_order(
        _with_advice(finding, evidence)
        for known in rules_of("checkpoint")
        for finding in known.check(evidence)
        if known.rule.name == _UNEXAMINED or not _rests_on(finding.path, unexamined)
    )


def _rests_on(path: str, unexamined: set[str]) -> bool:
    """Whether a finding rests on a file that was not examined: such a file is not missing."""
    mine = _neighbours(main_file(path) or path)
    return any(
        f"{mine}/".startswith(f"{theirs}/")
        or theirs.startswith(f"{mine}/")
        or (theirs in (OFFSETS, COMMITS) and mine.startswith((OFFSETS, COMMITS, STATE)))
        for theirs in map(_neighbours, unexamined)
    )


def _neighbours(path: str) -> str:
    """Files that are judged by each other: a log, an operator, a source."""
    top, slash, rest = path.partition("/")
    return top if top in (OFFSETS, COMMITS) else f"{top}{slash}{rest.partition('/')[0]}"


def _with_advice(finding: Finding, evidence: Evidence) -> Finding:
    # The old bytes of a file repair it, whatever is wrong with it.
    if not finding.repairable and finding.path not in evidence.cures:
        return finding
    # `repair` must read the content of a state file if only the content shows the damage.
    read = " --read-data" if evidence.read_data and finding.path.startswith(f"{STATE}/") else ""
    asked = " --table TABLE" if Mend.SOURCE_SNAPSHOT in mends_of(finding) else ""
    do = f"`floodmark repair CP{read}{asked}`. By hand: {finding.do}"
    return replace(finding, repairable=True, do=do)


@cache
def _mends() -> dict[str, tuple[Mend, ...]]:
    return {known.rule.code: known.rule.mends for known in rules_of("checkpoint")}


def mends_of(finding: Finding) -> tuple[Mend, ...]:
    """Return the mends that the finding's rule offers to `repair`."""
    return _mends().get(finding.code, ())


def find_rule(name: str) -> Known:
    """Return a rule by its code or its name."""
    wanted = _FORMER_NAMES.get(name.strip().lower(), name.strip())
    for known in all_rules():
        if wanted.upper() == known.rule.code or wanted.lower() == known.rule.name:
            return known
    close = _close(wanted, (known.rule.name for known in all_rules()))
    raise WrongUse(
        f"no rule is called {name!r}",
        f"Close to it: {', '.join(close)}." if close else "",
        "`floodmark explain --all` lists them.",
    )


def _close(name: str, known: Iterable[str]) -> list[str]:
    import difflib

    return difflib.get_close_matches(name.lower(), list(known), n=3, cutoff=0.5)
