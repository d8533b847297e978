"""Finds the rules by the files of their families' folders, when first asked.

So a rule is added by adding a file: no list has to be kept.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

from floodmark.checkpoint.evidence import Evidence
from floodmark.checkpoint.layout import STATE
from floodmark.errors import WrongUse
from floodmark.rules.finding import Finding, Rule, in_order
from floodmark.rules.mend import Mend
from floodmark.rules.start_inputs.situation import Situation

FAMILIES = ("checkpoint", "pipeline", "compatibility", "start")
_FORMER_NAMES = {
    "local-checkpoint-on-cluster": "checkpoint-on-local-disk",
    "unreplayable-source": "non-replayable-source",
}


class Known(NamedTuple):
    rule: Rule
    family: str
    check: Callable[[Any], Iterator[Any]]
    """Gives findings; of compatibility, reasons."""
    together: bool
    """Lint: it looks at every file at once."""
    check_start: Callable[[Situation], Iterator[Finding]] | None = None
    """Of a rule that also judges a query before it starts."""
    check_starts: Callable[[Sequence[tuple[str, str, str]]], Iterator[Finding]] | None = None
    """Of a rule that also judges all pipelines of a run together."""


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
    """What judges a query before it starts, of every family."""
    return tuple(known.check_start for known in all_rules() if known.check_start is not None)


def names_to_allow() -> dict[str, str]:
    """What `--allow` takes → the rule's name: former names lead to today's."""
    names = {
        known.rule.name
        for known in all_rules()
        if known.check_start or known.check_starts or known.family == "compatibility"
    }
    return {name: name for name in sorted(names)} | _FORMER_NAMES


def examine(evidence: Evidence) -> tuple[Finding, ...]:
    """Every finding of every doctor's rule: none stops another."""
    return in_order(
        _with_advice(finding, evidence)
        for known in rules_of("checkpoint")
        for finding in known.check(evidence)
    )


def _with_advice(finding: Finding, evidence: Evidence) -> Finding:
    # Whatever is wrong with a file, its old bytes mend it.
    if not finding.repairable and finding.path not in evidence.cures:
        return finding
    # What only the content of a state file shows, `repair` does not see without reading it.
    read = " --read-data" if evidence.read_data and finding.path.startswith(f"{STATE}/") else ""
    asked = " --table TABLE" if Mend.SOURCE_SNAPSHOT in mends_of(finding) else ""
    do = f"`floodmark repair CP{read}{asked}`. By hand: {finding.do}"
    return replace(finding, repairable=True, do=do)


@cache
def _mends() -> dict[str, tuple[Mend, ...]]:
    return {known.rule.code: known.rule.mends for known in rules_of("checkpoint")}


def mends_of(finding: Finding) -> tuple[Mend, ...]:
    """What the finding's rule offers to `repair`."""
    return _mends().get(finding.code, ())


def find_rule(name: str) -> Known:
    """By code or by name."""
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
