"""Runs the rules of compatibility: what changed, and what that leads to, all of it together."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from dataclasses import replace

from floodmark.checkpoint.places.flow import flow_place
from floodmark.rules.registry import rules_of
from floodmark.rules.restarts.comparison import Comparison
from floodmark.rules.restarts.reason import (
    Judgement,
    Reason,
    Verdict,
    accepted,
    in_order,
    worst,
)
from floodmark.secret_text import redacted

# What only the real sources can tell: others stood in for them.
_OF_SOURCES = (
    "source-kind-changed",
    "source-names-unknown",
    "source-place-changed",
    "sources-reordered",
)

# Rules about which sources there are: the others compare sources that are the same.
_OF_ALL_SOURCES = (*_OF_SOURCES, "source-count-changed")


def judge_restart(comparison: Comparison, accept: frozenset[str] = frozenset()) -> Judgement:
    """`accept` names rules whose silent changes are meant."""
    found: list[Reason] = []
    if comparison.checkpoint.latest_batch is not None:  # a checkpoint without a batch binds nobody
        for known in rules_of("compatibility"):
            whole = known.rule.name in _OF_ALL_SOURCES
            found.extend(known.check(comparison if whole else comparison.aligned))
    found = [accepted(one) if one.rule in accept else one for one in found]
    not_compared = comparison.not_compared if found else ()
    rehearsal = comparison.rehearsal
    if rehearsal is not None and rehearsal.ran:
        # Spark has the last word: what it was said to refuse, it did not.
        found = [
            one
            for one in found
            if not one.is_refused or (one.rule in _OF_SOURCES and not rehearsal.real_sources)
        ]
    decided_by = "rules" if rehearsal is None else "rehearsal"
    verdict, command = worst(found), None
    if verdict is Verdict.NEEDS_MIGRATION:
        command = migrate_command(comparison, found)
        found = [_with_command(one, command) for one in found]
    return Judgement(verdict, decided_by, in_order(found), not_compared, command)


def migrate_command(comparison: Comparison, found: Iterable[Reason]) -> str | None:
    """One command for all that changed; None where a change is none of `migrate`'s."""
    needed = [one for one in found if not one.verdict.is_yes]
    if any(one.migrate is None for one in needed if one.verdict is Verdict.NEEDS_MIGRATION):
        return None
    path = comparison.checkpoint.path
    said = [option for one in found for option in one.migrate or ()]
    # What nobody may change without a warning, `migrate` asks to be accepted by its name.
    said += [
        f"--accept {one.rule}" for one in needed if one.verdict is Verdict.UNKNOWN and one.silent
    ]
    # Of a flow, `migrate` takes the next number by itself: that is where the pipeline looks.
    new = [] if flow_place(path) else [f"{path.rstrip('/')}-new"]
    words = ["floodmark", "migrate", path, *new, "--app"]
    app, *more = comparison.application
    before, after = (
        [shlex.quote(redacted(word)) for word in part] for part in ((*words, app), more)
    )
    return " ".join([*before, *dict.fromkeys(said), *after])


def _with_command(one: Reason, command: str | None) -> Reason:
    if command is None or one.migrate is None or one.rule == "refused-in-rehearsal":
        return one
    return replace(one, do=f"{command}\n{one.do}")
