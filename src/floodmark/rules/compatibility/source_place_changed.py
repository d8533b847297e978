"""Finds a source that reads from somewhere else."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.checkpoint.layout import SOURCES
from floodmark.checkpoint.outline import SourceOutline
from floodmark.connectors.registry import about, family, kind_named
from floodmark.rules.finding import Rule, Severity
from floodmark.rules.restarts.comparison import Comparison, refuses_other_files
from floodmark.rules.restarts.reason import Reason, Verdict, reason
from floodmark.rules.restarts.source_matching import (
    HeldSource,
    is_whole,
    plain_path,
    reads,
)
from floodmark.rules.restarts.source_moves import DROPPED_SOURCE, migrate_options, what_to_do

RULE = Rule(
    "FM304",
    "source-place-changed",
    Severity.WARNING,
    finds="Other topics, another path or another table than at the last start.",
    matters="The checkpoint says what was read from the old place, and nothing about the new one.",
    restart="Kafka: topics that are gone fail the query while failOnDataLoss is true, and are "
    "dropped without a warning otherwise; new topics are read from their beginning. Files: "
    "another folder fails with 'Wrong basePath', another glob is read in full. Another "
    "Delta table fails.",
    instead="`floodmark migrate` drops the old place and begins the new one where --start says. If "
    "it is the same data in a new place, `floodmark upgrade --map-topic OLD=NEW` (Kafka) carries "
    "the position over.",
)


def check(comparison: Comparison) -> Iterator[Reason]:
    for at, old in comparison.sources.replaced:
        held, now = comparison.held_sources[old], comparison.new.sources[at]
        if family(held.kind) == family(now.kind) and not comparison.named_sources():
            yield _elsewhere(comparison, at, held)
    new, held_sources = comparison.new.sources, comparison.aligned.held_sources
    if len(held_sources) != len(new):
        return
    for at, now in enumerate(new):
        position, noted = held_sources[at].position, held_sources[at].noted
        if position.offset is None:
            continue
        if about(position).has_topics and now.kind == position.kind:
            yield from _topics(at, position.offset, now)
        elif noted is not None and noted.kind == now.kind:
            file = held_sources[at].file
            if not _is_one_place(noted, now, file):
                yield _written_otherwise(at, noted, now, file)


def _elsewhere(comparison: Comparison, at: int, held: HeldSource) -> Reason:
    """Report another place of the same kind: the old source is removed, and a new one is added."""
    now = comparison.new.sources[at]
    silent = not _is_refused(now, held)
    has_read = (
        f"; the checkpoint has read {held.file}, which is not in that place" if held.file else ""
    )
    before = f"at the last start it was {held.noted.place}" if held.noted else has_read[2:]
    return reason(
        RULE,
        Verdict.NEEDS_MIGRATION,
        f"Source {at} ({now.kind}) reads {now.place}; {before or held.words}.",
        f"{SOURCES}/{held.position.id}",
        why=_restart(now, not silent),
        do=f"{what_to_do(comparison)} If it is the same data in a new place, and everything in "
        "it may be read twice, you can keep the old position: --start "
        f"{at}=source:{held.position.id}.",
        silent=silent,
        migrate=migrate_options(comparison),
    )


def _is_refused(now: SourceOutline, held: HeldSource) -> bool:
    known = kind_named(family(now.kind))
    if known.has_topics:
        return now.options.get("failondataloss", "true").lower() != "false"
    return known.names_table or refuses_other_files(now, held.noted)


def _restart(now: SourceOutline, refused: bool) -> str:
    """Return what Spark does at the start with this kind of source."""
    known = kind_named(family(now.kind))
    if known.has_topics:
        if refused:
            return (
                "The query fails: partitions of the old topic are gone, and failOnDataLoss is true."
            )
        return (
            "failOnDataLoss is false: the query starts without a warning, drops the old topic "
            "and reads the new one from its beginning."
        )
    if known.lists_files:
        if refused:
            return (
                "The query fails with 'Wrong basePath' if the last batch had files; otherwise "
                "it reads every file of the new place."
            )
        return "The query starts without a warning, and reads every file of the new place."
    if known.names_table:
        return "The query fails: the checkpoint's offset names the id of another table."
    return (
        "floodmark does not know this kind of source: whether the query starts depends on the "
        "source."
    )


def _is_one_place(before: SourceOutline, now: SourceOutline, file: str | None) -> bool:
    """`/in/` is `/in`, and `file:/in` where the files that were read are local ones.

    Another scheme (s3, s3a) is another place: Spark knows files by their whole address.
    """
    was, path = before.place, now.place
    if was is None or path is None or not kind_named(family(now.kind)).lists_files:
        return was == path
    if was.rstrip("/") == path.rstrip("/"):
        return True
    is_local = file is not None and file.startswith("file:")
    is_meant = all(one.startswith(("/", "file:")) for one in (was, path))
    return is_local and is_meant and plain_path(was) == plain_path(path)


def _written_otherwise(
    at: int, before: SourceOutline, now: SourceOutline, file: str | None
) -> Reason:
    if _is_from_working_directory(before, now):
        inside = None if file is None else reads(now, file)
        if inside is not False or not is_whole(now.place or ""):
            return _from_working_directory(at, before, now, file if inside else None)
    refused = refuses_other_files(now, before)
    return reason(
        RULE,
        Verdict.NEEDS_NEW_CHECKPOINT if refused else Verdict.UNKNOWN,
        f"Source {at} ({now.kind}) reads {now.place}; at the last start it was {before.place}.",
        f"{SOURCES}/{at}",
        why=_restart(now, refused),
        do="Go back to the old place, or begin with a new checkpoint in the new one."
        if refused
        else "Make sure that the new place holds nothing that was read already, or go back to the "
        "old one.",
        silent=not refused and not kind_named(now.kind).names_table,
    )


def _is_from_working_directory(before: SourceOutline, now: SourceOutline) -> bool:
    return kind_named(family(now.kind)).lists_files and (
        is_whole(before.place or "") != is_whole(now.place or "")
    )


def _from_working_directory(
    at: int, before: SourceOutline, now: SourceOutline, file: str | None
) -> Reason:
    """One path begins at the working directory, the other at the root."""
    is_known = is_whole(now.place or "") and file is not None
    return reason(
        RULE,
        Verdict.COMPATIBLE if is_known else Verdict.UNKNOWN,
        f"Source {at} ({now.kind}) reads {now.place}; at the last start it was {before.place}"
        + (f", and {file}, which was read, lies in it." if is_known else "."),
        f"{SOURCES}/{at}",
        why="It starts: it is the same folder."
        if is_known
        else "It is the same folder only if the query starts in the working directory that it "
        "belongs to.",
        do="Nothing."
        if is_known
        else "Write the whole path, or make sure of the working directory.",
    )


def _topics(at: int, offset: object, now: SourceOutline) -> Iterator[Reason]:
    asked = now.options.get("subscribe")
    if asked is None or not isinstance(offset, dict):
        return  # only Kafka knows the topics of a pattern or an assignment
    topics = {topic.strip() for topic in asked.split(",")}
    gone, come = sorted(set(offset) - topics), sorted(topics - set(offset))
    if gone:
        silent = now.options.get("failondataloss", "true").lower() == "false"
        yield reason(
            RULE,
            Verdict.NEEDS_MIGRATION,
            f"Source {at} reads {asked}; the checkpoint stands in {', '.join(gone)}.",
            f"{SOURCES}/{at}",
            why=_restart(now, not silent),
            do="`floodmark migrate` leaves the topic out. If it has another name now: `floodmark "
            "upgrade CP NEW --map-topic OLD=NEW`.",
            silent=silent,
            migrate=(f"--accept {DROPPED_SOURCE}",),
        )
    elif come:
        yield reason(
            RULE,
            Verdict.COMPATIBLE,
            f"Source {at} reads {', '.join(come)} as well, from the beginning.",
            f"{SOURCES}/{at}",
            why="The query starts. Kafka's new partitions are read from their beginning.",
            do="Nothing, if you want all of it.",
        )
