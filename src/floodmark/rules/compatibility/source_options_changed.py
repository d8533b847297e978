"""Finds a changed option of a source."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from floodmark.checkpoint.conf_keys import CHECKPOINT_OPTION
from floodmark.checkpoint.layout import SOURCES
from floodmark.checkpoint.outline import SourceOutline
from floodmark.connectors.files.offset import FILE_SOURCES
from floodmark.rules.finding import Rule, Severity
from floodmark.rules.restarts.comparison import (
    Comparison,
    change_words,
    option_changes,
)
from floodmark.rules.restarts.reason import Reason, Verdict, reason
from floodmark.rules.restarts.source_moves import LIMITS

RULE = Rule(
    "FM306",
    "source-options-changed",
    Severity.ADVICE,
    finds="An option of a source that differs from the last start, and that is neither its place "
    "nor a rate limit.",
    matters="Options that say where to begin apply only to a new query; others change how records "
    "are read.",
    restart="The query starts. startingOffsets, startingVersion and their like are ignored: the "
    "checkpoint says where to go on.",
    instead="Nothing. To begin elsewhere use `floodmark rewind` or `floodmark upgrade`.",
)


_PLACES = frozenset({"subscribe", "subscribepattern", "assign", "path", "table"})
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
# These options change how records are fetched, not the records.
_FETCHING = ("kafka.", "kafkaconsumer.", "fetchoffset.", "groupidprefix", "failondataloss")
_HOUSEKEEPING = (
    "cleansource",
    "sourcearchivedir",
    "maxcachedfiles",
    "discardcachedinputratio",
    CHECKPOINT_OPTION,
)
# Spark's defaults, by the kind of files. An option that is set to its default changes nothing.
_EVERY_KIND = {"recursivefilelookup": "false", "latestfirst": "false", "filenameonly": "false"}
_DEFAULTS = {
    "csv": {
        "multiline": "false",
        "header": "false",
        "ignoreleadingwhitespace": "false",
        "ignoretrailingwhitespace": "false",
        "enforceschema": "true",
        "mode": "permissive",
    },
    "json": {
        "multiline": "false",
        "allowcomments": "false",
        "allowsinglequotes": "true",
        "mode": "permissive",
    },
    "text": {"wholetext": "false"},
}
_SEPARATORS = ("sep", "delimiter")
_CHARACTERS = {"quote": '"', "escape": "\\"}
"""Of CSV. Unlike words, they are not the same in another case."""
_INFERENCE = {
    "csv": ("inferschema", "samplingratio"),
    "json": ("samplingratio", "primitivesasstring", "prefersdecimal"),
}
"""Options that only find columns, and columns are compared by themselves."""


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
            if key in _PLACES or (key in LIMITS and key not in _WHICH_FILES):
                continue
            what = f"Source {at}: {change_words(key, old, now)}"
            if after.kind in FILE_SOURCES and _reads_the_same(before, after, key):
                do = "Nothing: Spark reads the same records."
                yield reason(RULE, Verdict.COMPATIBLE, f"{what}.", f"{SOURCES}/{at}", do=do)
            elif key in _WHICH_FILES and after.kind in FILE_SOURCES:
                yield _files_differ(at, f"{what}.")
            elif key.startswith((*_BEGINNING, *_FETCHING, *_HOUSEKEEPING)):
                ignored = "; it is ignored" if key.startswith(_BEGINNING) else ""
                yield reason(RULE, Verdict.COMPATIBLE, f"{what}{ignored}.", f"{SOURCES}/{at}")
            else:
                yield _read_otherwise(comparison, at, f"{what}.")


def _reads_the_same(before: SourceOutline, after: SourceOutline, key: str) -> bool:
    kind = after.kind
    if kind == "csv" and key in _SEPARATORS:
        return _separator(before.options) == _separator(after.options)
    old, now = before.options.get(key), after.options.get(key)
    if kind == "csv" and key in _CHARACTERS:
        default = _CHARACTERS[key]
        return (default if old is None else old) == (default if now is None else now)
    words = {**_EVERY_KIND, **_DEFAULTS.get(kind, {})}
    if key in words:
        meant = [words[key] if one is None else one.lower() for one in (old, now)]
        return meant[0] == meant[1]
    return key in _INFERENCE.get(kind, ())


def _separator(options: Mapping[str, str]) -> str:
    """Return what separates the values of CSV; of two names for it, the first one wins."""
    return next((options[name] for name in _SEPARATORS if name in options), ",")


def _files_differ(at: int, what: str) -> Reason:
    return reason(
        RULE,
        Verdict.UNKNOWN,
        what,
        f"{SOURCES}/{at}",
        why="The query starts without a warning, and reads other files than before: it may "
        "leave out waiting files forever, and read files that it left out before.",
        do="Set the old value again, or look which files wait (`floodmark files CP` shows "
        "those that were read). If you intend it: --accept source-options-changed.",
        silent=True,
    )


def _read_otherwise(comparison: Comparison, at: int, what: str) -> Reason:
    """Report records that are read in another way than those in the state."""
    if not comparison.is_stateful:
        do = "Nothing, if new records should be read in this way."
        return reason(RULE, Verdict.COMPATIBLE, what, f"{SOURCES}/{at}", do=do)
    return reason(
        RULE,
        Verdict.UNKNOWN,
        what,
        f"{SOURCES}/{at}",
        why="The query starts without a warning. The state holds records as they were read before.",
        do="If records are the same either way: --accept source-options-changed. Otherwise set "
        "the old value again, or begin with an empty state.",
        silent=True,
    )
