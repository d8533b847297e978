"""Sources that came, went or changed places, in words, and how they are carried. Pure."""

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


def own_start(source: SourceOutline) -> str:
    """Where the code's own options let a source begin, in words."""
    known = kind_named(family(source.kind))
    if known.has_topics:
        return _option(source, _TOPIC_STARTS) or "latest, for startingOffsets is not set"
    if known.names_table:
        return _option(source, _TABLE_STARTS) or "the table as it is then, and what comes after"
    if known.lists_files:
        return "every file that lies there"
    return "where such a source begins by itself"


def _option(source: SourceOutline, names: tuple[str, ...]) -> str | None:
    return next(
        (f"{name} {source.options[name]}" for name in names if name in source.options), None
    )


def added_words(comparison: Comparison) -> Iterator[tuple[int, str]]:
    for at in comparison.sources.added:
        source = comparison.new.sources[at]
        yield (
            at,
            f"Source {at} ({source_words(source)}) is new. By the code's own options it begins "
            f"with: {own_start(source)}.",
        )


def removed_words(comparison: Comparison) -> Iterator[tuple[int, str]]:
    for old in comparison.sources.removed:
        held = comparison.held_sources[old]
        yield old, f"Source {held.position.id} of the checkpoint ({held.words}) is read no more."


def migrate_options(comparison: Comparison) -> tuple[str, ...]:
    """What `floodmark migrate` has to be told of the sources."""
    matching = comparison.sources
    said = ["--start NEW=source:OLD"] if matching.unclear else []
    if matching.removed:
        said.append(f"--accept {DROPPED_SOURCE}")
    return tuple(said)


def what_to_do(comparison: Comparison) -> str:
    matching = comparison.sources
    if matching.unclear:
        return (
            "For each source say which one of the checkpoint it goes on from "
            "(--start NEW=source:OLD), or where it begins (--start NEW=earliest)."
        )
    said = ["`floodmark migrate` carries state and positions over."]
    if matching.added:
        said.append(f"--start {matching.added[0]}=earliest, latest or an offset begins elsewhere.")
    if matching.removed:
        said.append("The plan says what of the source that goes was not read yet.")
    return " ".join(said)


def convert_command(comparison: Comparison) -> str:
    """Each source of the checkpoint with the name that the new code has for it."""
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
