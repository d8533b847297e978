"""Describes added, removed and moved sources, and how they are carried. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from floodmark.checkpoint.outline import SourceOutline
from floodmark.connectors.registry import family, kind_named
from floodmark.rules.restarts.comparison import Comparison
from floodmark.rules.restarts.source_matching import source_words

DROPPED_SOURCE = "dropped-source"
_TOPIC_STARTS = ("startingtimestamp", "startingoffsetsbytimestamp", "startingoffsets")
_TABLE_STARTS = ("startingversion", "startingtimestamp")
LIMITS = frozenset(
    {
        "maxoffsetspertrigger",
        "minoffsetspertrigger",
        "maxtriggerdelay",
        "maxfilespertrigger",
        "maxbytespertrigger",
        "minpartitions",
        "maxrecordsperpartition",
        "latestfirst",
        "maxfileage",
        "rowspersecond",
        "numpartitions",
        "rampuptime",
    }
)
"""Options that say how much a batch takes."""


def own_start(source: SourceOutline) -> str:
    """Return where a source begins with the code's own options, in words."""
    known = kind_named(family(source.kind))
    if known.has_topics:
        return _option(source, _TOPIC_STARTS) or "latest, because startingOffsets is not set"
    if known.names_table:
        return (
            _option(source, _TABLE_STARTS) or "the table as it is at that time, and later changes"
        )
    if known.lists_files:
        return "every file in the folder"
    return "the source's own default"


def _option(source: SourceOutline, names: tuple[str, ...]) -> str | None:
    return next(
        (f"{name} {source.options[name]}" for name in names if name in source.options), None
    )


def added_words(comparison: Comparison) -> Iterator[tuple[int, str]]:
    for at in comparison.sources.added:
        source = comparison.new.sources[at]
        yield (
            at,
            f"Source {at} ({source_words(source)}) is new. With the code's own options it begins "
            f"with: {own_start(source)}.",
        )


def removed_words(comparison: Comparison) -> Iterator[tuple[int, str]]:
    for old in comparison.sources.removed:
        held = comparison.held_sources[old]
        yield old, f"Source {held.position.id} of the checkpoint ({held.words}) is no longer read."


def migrate_options(comparison: Comparison) -> tuple[str, ...]:
    """Return the options about sources for `floodmark migrate`."""
    matching = comparison.sources
    said = ["--start NEW=source:OLD"] if matching.unclear else []
    if matching.removed:
        said.append(f"--accept {DROPPED_SOURCE}")
    return tuple(said)


def what_to_do(comparison: Comparison) -> str:
    matching = comparison.sources
    if matching.unclear:
        return (
            "For each source give the source of the checkpoint that it continues (--start "
            "NEW=source:OLD), or where it begins (--start NEW=earliest)."
        )
    said = ["`floodmark migrate` carries state and positions over."]
    if matching.added:
        said.append(
            f"--start {matching.added[0]}=earliest, latest or an offset starts it elsewhere."
        )
    if matching.removed:
        said.append("The plan says what is unread in the source that is removed.")
    return " ".join(said)


def convert_command(comparison: Comparison) -> str:
    """Return the command that gives each source of the checkpoint its name in the new code."""
    held, new = comparison.held_sources, comparison.new.sources
    names = {one.position.id: "NAME" for one in held}
    for at, old in enumerate(comparison.sources.pairs):
        name = new[at].name
        if old is not None and name is not None:
            names[held[old].position.id] = name
    path = comparison.checkpoint.path
    said = [part for source, name in names.items() for part in ("--name", f"{source}={name}")]
    words = ["floodmark", "convert", path, comparison.new_checkpoint, *said, "--execute"]
    return " ".join(shlex.quote(word) for word in words)
