"""Judges the sources of new code by the rules of `check`, before `upgrade` makes a checkpoint.

This module does not outline the new code's state: `check` compares the state.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace

from floodmark.changes.carry.origin import Origin
from floodmark.changes.carry.topic_names import map_entry
from floodmark.changes.sinks import Sink
from floodmark.checkpoint.model import Checkpoint
from floodmark.checkpoint.source_kinds import with_code_kinds
from floodmark.diagnosis.held import gather_held
from floodmark.engine.app.built import Built
from floodmark.engine.code.drawing import ApplicationCode
from floodmark.engine.code.outline import described
from floodmark.engine.code.query import read_query, read_sources, source_folders
from floodmark.engine.code.sink_log import ask_sink
from floodmark.engine.code.source_tables import read_tables
from floodmark.errors import FloodmarkError, WouldLose
from floodmark.rules.restarts.comparison import Comparison
from floodmark.rules.restarts.reason import Judgement
from floodmark.rules.restarts.source_lists import seen_by_place
from floodmark.rules.restarts.source_matching import source_words
from floodmark.rules.restarts.verdict import is_of_sources, judge_sources, starts_nowhere


@dataclass(frozen=True)
class CodeSources:
    checkpoint: Checkpoint
    """The old checkpoint, with the kinds of sources that the code names."""
    notes: tuple[str, ...]
    """Lines for the plan: what was compared, and what was not."""
    sink: Sink
    sink_newest: int | None
    """The newest batch of this query in the code's sink; -1: no batch; None: not known."""


def require_sources(
    code: ApplicationCode,
    origin: Origin,
    new: str,
    topics: Mapping[str, str],
    said: Collection[str],
    accept: Collection[str],
) -> CodeSources:
    """Refuse the code if its sources would lose or repeat input; return what was compared.

    `topics` maps old names to new names; `said` are the sources whose kind the user named.
    """
    with code.built() as found:
        comparison = _compared(found, origin, new, topics, said, code.app)
        newest = _sink_newest(found, comparison)
    judged = judge_sources(comparison, frozenset(accept))
    _refuse(judged, code.app)
    notes = (*_agreeing(comparison, code.app), *_told(judged), _not_compared(new, code))
    kinds = [one.kind for one in comparison.new.sources]
    drawn = comparison.new
    complete = drawn.output_mode.lower() == "complete"
    sink = Sink(drawn.sink, drawn.sink_options.get("path"), complete)
    return CodeSources(with_code_kinds(origin.checkpoint, kinds), notes, sink, newest)


def _sink_newest(found: Built, comparison: Comparison) -> int | None:
    query_id, drawn = comparison.checkpoint.query_id, comparison.new
    try:
        asked = ask_sink(found.spark, drawn.sink, drawn.sink_options, query_id)
    except FloodmarkError:
        return None
    if asked is None:
        return None
    return -1 if asked.newest is None else asked.newest


def _compared(
    found: Built,
    origin: Origin,
    new: str,
    topics: Mapping[str, str],
    said: Collection[str],
    app: str,
) -> Comparison:
    held = gather_held(origin.files, origin.checkpoint, look=False)
    sources, last = read_sources(found.writer), held.last
    folders = source_folders(found.writer)
    checkpoint = with_code_kinds(origin.checkpoint, [one.kind for one in sources])
    drawn = described(
        found.spark, read_query(found.writer), redaction=last.redaction if last else None
    )
    return Comparison(
        _renamed(checkpoint, topics),
        held.held,
        drawn,
        last,
        found.fingerprint,
        places=held.places,
        seen=seen_by_place(checkpoint, held.seen, folders),
        folders=folders,
        application=(app,),
        code_checkpoint=new,
        code_checkpoint_is_free=True,
        tables=read_tables(found.spark, sources, last),
        said_kinds=frozenset(said),
    )


def _renamed(checkpoint: Checkpoint, topics: Mapping[str, str]) -> Checkpoint:
    """Return the checkpoint as `upgrade` will write it: topics have their new names."""
    latest, entry = checkpoint.latest_batch, checkpoint.latest_entry
    if latest is None or entry is None or not topics:
        return checkpoint
    offsets = {**checkpoint.offsets, latest: map_entry(entry, topics)}
    return replace(checkpoint, offsets=offsets)


def _refuse(judged: Judgement, app: str) -> None:
    found = [
        one
        for one in judged.reasons
        if not one.verdict.is_yes and (is_of_sources(one) or starts_nowhere(one))
    ]
    if not found:
        return
    first, *more = found
    why = "\n".join([first.why, *(one.what for one in more)])
    way = f"\nOr accept it by name: --accept {first.rule}." if first.silent else ""
    raise WouldLose(f"{app}: {first.what} ({first.code} {first.rule})", why, f"{first.do}{way}")


def _agreeing(comparison: Comparison, app: str) -> Iterator[str]:
    matching = comparison.sources
    for at, old in enumerate(matching.pairs):
        words = source_words(comparison.new.sources[at])
        if old is None:
            yield f"{app} reads {words}, which is new to the checkpoint."
        elif at in matching.assumed:
            held = comparison.held_sources[old]
            yield (
                f"{app} reads {words}. NOT COMPARED: the checkpoint says that source "
                f"{held.position.id} is {held.kind}, but not what it read."
            )
        else:
            yield f"{app} reads {words}, as the checkpoint does."


def _told(judged: Judgement) -> Iterator[str]:
    for one in judged.reasons:
        if not is_of_sources(one):
            mark = "" if one.verdict.is_yes else "NOT THE SAME: "
            yield f"{mark}{one.what} {one.why} ({one.code} {one.rule})"


def _not_compared(new: str, code: ApplicationCode) -> str:
    app, script = code.app, code.script
    given = " -- ARGUMENTS" if script is not None and script.arguments else ""
    return (
        f"Only the sources of {app} and its session were compared. To compare its state and "
        f"results, run this after the plan is executed: "
        f"`floodmark check {shlex.quote(new)} {shlex.quote(app)}{given}`."
    )
