"""Finds another option of a source."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.checkpoint.conf_keys import CHECKPOINT_OPTION
from floodmark.checkpoint.layout import SOURCES
from floodmark.connectors.files.offset import FILE_SOURCES
from floodmark.rules.finding import Rule, Severity
from floodmark.rules.restarts.comparison import (
    Comparison,
    change_words,
    option_changes,
)
from floodmark.rules.restarts.reason import Reason, Verdict, reason

RULE = Rule(
    "FM306",
    "source-options-changed",
    Severity.ADVICE,
    finds="An option of a source that differs from the last start, and that is neither its place "
    "nor a rate limit.",
    matters="Options that say where to begin apply only to a new query; others change how records "
    "are read.",
    restart="It starts. startingOffsets, startingVersion and their like are ignored: the "
    "checkpoint says where to go on.",
    instead="Nothing. To begin elsewhere use `floodmark rewind` or `floodmark upgrade`.",
)


_PLACES = frozenset({"subscribe", "subscribepattern", "assign", "path", "table"})
_LIMITS = ("max", "min", "rowspersecond", "numpartitions", "rampuptime")
_WHICH_FILES = frozenset(
    {
        "latestfirst",
        "maxfileage",
        "pathglobfilter",
        "recursivefilelookup",
        "modifiedbefore",
        "modifiedafter",
        "filenameonly",
        "ignorecorruptfiles",
        "ignoremissingfiles",
    }
)
_BEGINNING = ("starting", "ending")
# How records are fetched, and not what they are.
_FETCHING = ("kafka.", "kafkaconsumer.", "fetchoffset.", "groupidprefix", "failondataloss")
_HOUSEKEEPING = ("cleansource", "sourcearchivedir", CHECKPOINT_OPTION)


def check(comparison: Comparison) -> Iterator[Reason]:
    for at, before, after in comparison.noted_sources():
        if before.kind != after.kind:
            if {before.kind, after.kind} <= FILE_SOURCES:
                yield _read_otherwise(
                    comparison,
                    at,
                    f"Source {at} is read as {after.kind}, and was read as {before.kind}.",
                )
            continue
        for key, old, now in option_changes(before.options, after.options):
            if key in _PLACES or (key.startswith(_LIMITS) and key not in _WHICH_FILES):
                continue
            what = f"Source {at}: {change_words(key, old, now)}"
            if key in _WHICH_FILES and after.kind in FILE_SOURCES:
                yield _other_files(at, f"{what}.")
            elif key.startswith((*_BEGINNING, *_FETCHING, *_HOUSEKEEPING)):
                ignored = "; it is ignored" if key.startswith(_BEGINNING) else ""
                yield reason(RULE, Verdict.COMPATIBLE, f"{what}{ignored}.", f"{SOURCES}/{at}")
            else:
                yield _read_otherwise(comparison, at, f"{what}.")


def _other_files(at: int, what: str) -> Reason:
    return reason(
        RULE,
        Verdict.UNKNOWN,
        what,
        f"{SOURCES}/{at}",
        why="It starts without a warning, and takes other files than before: some that wait may be "
        "left out forever, some that were left out may come.",
        do="Set it as it was, or look which files wait (`floodmark files CP` shows those that were "
        "read). If you intend it: --accept source-options-changed.",
        silent=True,
    )


def _read_otherwise(comparison: Comparison, at: int, what: str) -> Reason:
    """Records read in another way; what is in a state was read in the old one."""
    if not comparison.is_stateful:
        do = "Nothing, if what is still to come is to be read so."
        return reason(RULE, Verdict.COMPATIBLE, what, f"{SOURCES}/{at}", do=do)
    return reason(
        RULE,
        Verdict.UNKNOWN,
        what,
        f"{SOURCES}/{at}",
        why="It starts without a warning. The state holds records as they were read before.",
        do="If records are the same either way: --accept source-options-changed. Otherwise set it "
        "as it was, or begin with an empty state.",
        silent=True,
    )
