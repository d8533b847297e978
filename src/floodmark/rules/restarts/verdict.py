"""Runs the compatibility rules, and combines their reasons into one verdict."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from dataclasses import replace

from floodmark.checkpoint.places.flow import flow_place
from floodmark.rules.pasteable import with_places
from floodmark.rules.registry import Known, rules_of
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

# Rules that only real sources can overrule, not the empty ones of a rehearsal.
_OF_SOURCES = (
    "source-kind-changed",
    "source-names-unknown",
    "source-place-changed",
    "sources-reordered",
)

# A rehearsal writes to a sink of its own, and says nothing of the code's sink.
_OF_THE_SINK = "memory-sink-resumed"

# Rules about added and removed sources: the others compare only the kept sources.
_OF_ALL_SOURCES = (*_OF_SOURCES, "source-count-changed")


# Rules that need neither the state nor the meaning of the new code.
_BEFORE_STATE = (
    *_OF_ALL_SOURCES,
    _OF_THE_SINK,
    "evaluation-settings-changed",
    "spark-upgraded",
)


def judge_restart(comparison: Comparison, accept: frozenset[str] = frozenset()) -> Judgement:
    """Return the judgement. `accept` names rules whose silent changes the user intends."""
    return _judged(comparison, rules_of("compatibility"), accept)


def judge_sources(comparison: Comparison, accept: frozenset[str] = frozenset()) -> Judgement:
    """Return the judgement by sources and session only: the new code's state is not known."""
    known = (one for one in rules_of("compatibility") if one.rule.name in _BEFORE_STATE)
    return _judged(comparison, known, accept)


def is_of_sources(found: Reason) -> bool:
    """Whether the reason is about which sources there are, and where each reads."""
    return found.rule in _OF_ALL_SOURCES


def starts_nowhere(found: Reason) -> bool:
    """Whether Spark refuses the code on every checkpoint that has begun, also on a new one."""
    return found.rule == _OF_THE_SINK


def _judged(comparison: Comparison, rules: Iterable[Known], accept: frozenset[str]) -> Judgement:
    found: list[Reason] = []
    if comparison.checkpoint.latest_batch is not None:  # without a batch, any code may use it
        for known in rules:
            whole = known.rule.name in _OF_ALL_SOURCES
            found.extend(known.check(comparison if whole else comparison.aligned))
    found = [accepted(one) if one.rule in accept else one for one in found]
    not_compared = comparison.not_compared if found else ()
    rehearsal = comparison.rehearsal
    if rehearsal is not None and rehearsal.ran:
        # Spark decides: it did not refuse what the rules said it would refuse.
        found = [
            one
            for one in found
            if not one.is_refused
            or one.rule == _OF_THE_SINK
            or (one.rule in _OF_SOURCES and not rehearsal.real_sources)
        ]
    decided_by = "rules" if rehearsal is None else "rehearsal"
    verdict, command = worst(found), None
    if verdict is Verdict.NEEDS_MIGRATION:
        command = migrate_command(comparison, found)
        found = [_with_command(one, command) for one in found]
    places = _places(comparison)
    found = [replace(one, do=with_places(one.do, places)) for one in found]
    then = None if command is None else _after_migrate(comparison)
    return Judgement(verdict, decided_by, in_order(found), not_compared, command, then)


def migrate_command(comparison: Comparison, found: Iterable[Reason]) -> str | None:
    """Return one command for all changes; None if `migrate` cannot carry one of them."""
    needed = [one for one in found if not one.verdict.is_yes]
    if any(one.migrate is None for one in needed if one.verdict is Verdict.NEEDS_MIGRATION):
        return None
    path = comparison.checkpoint.path
    said = [option for one in found for option in one.migrate or ()]
    # `migrate` needs each silent change to be accepted by its name.
    said += [
        f"--accept {one.rule}" for one in needed if one.verdict is Verdict.UNKNOWN and one.silent
    ]
    # For a flow, `migrate` itself chooses the next number: the pipeline looks there.
    new = [] if flow_place(path) else [comparison.new_checkpoint]
    words = ["floodmark", "migrate", path, *new, "--app"]
    app, *more = comparison.application
    before, after = (
        [shlex.quote(redacted(word)) for word in part] for part in ((*words, app), more)
    )
    return " ".join([*before, *dict.fromkeys(said), *after])


def _places(comparison: Comparison) -> dict[str, str]:
    """Return the paths for commands; for a flow NEW is left out, because the pipeline numbers
    it.
    """
    path = comparison.checkpoint.path
    new = "" if flow_place(path) else comparison.new_checkpoint
    named = {"CP": path, "NEW": new, "APP.py": comparison.application[0]}
    return {name: redacted(place) for name, place in named.items()}


def _after_migrate(comparison: Comparison) -> str:
    """Return how the code gets its new checkpoint."""
    app, new = comparison.application[0], redacted(comparison.new_checkpoint)
    if flow_place(comparison.checkpoint.path):
        return "Then start the pipeline: it goes on with the highest number."
    if comparison.code_checkpoint_is_free:
        return f"Then start {app}; its code names the checkpoint {new}."
    if comparison.code_checkpoint is None:
        return f"Then start {app} with the checkpoint {new}."
    return (
        f"Then change the checkpoint of {app} from {redacted(comparison.code_checkpoint)} to "
        f"{new}, and start it."
    )


def _with_command(one: Reason, command: str | None) -> Reason:
    if command is None or one.migrate is None or one.rule == "refused-in-rehearsal":
        return one
    return replace(one, do=f"{command}\n{one.do}")
