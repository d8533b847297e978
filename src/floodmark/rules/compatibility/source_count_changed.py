"""Finds more or fewer sources than the checkpoint has offsets for."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.checkpoint.layout import OFFSETS
from floodmark.rules.finding import Rule, Severity
from floodmark.rules.restarts.comparison import Comparison
from floodmark.rules.restarts.reason import Reason, Verdict, reason

RULE = Rule(
    "FM301",
    "source-count-changed",
    Severity.ERROR,
    finds="Another number of streaming sources than the newest offset entry has.",
    matters="Spark knows a source by its place in the plan, and its offsets by the same place.",
    restart="It fails: 'There are [1] sources in the checkpoint offsets and now there are "
    "[2] sources requested by the query'.",
    instead="Give the new source a query of its own, or go on with a new checkpoint: "
    "`floodmark upgrade --without-state` hands over where each source stands.",
)


def check(comparison: Comparison) -> Iterator[Reason]:
    held = comparison.checkpoint.sources
    before, after = len(held), len(comparison.new.sources)
    where = f"{OFFSETS}/{comparison.checkpoint.latest_batch}"
    if not comparison.named_sources():
        if before != after:
            verb = "adds" if after > before else "leaves out"
            yield reason(
                RULE,
                Verdict.NEEDS_NEW_CHECKPOINT,
                f"The new code reads {after} sources, and the checkpoint has offsets of {before}: "
                f"it {verb} {abs(after - before)}.",
                where,
            )
        return
    known = {source.id for source in held}
    asked = [one.name or str(at) for at, one in enumerate(comparison.new.sources)]
    gone = sorted(known - set(asked))
    if gone:
        yield reason(
            RULE,
            Verdict.UNKNOWN,
            f"The checkpoint has offsets of {', '.join(gone)}, which the new code does not read.",
            where,
            why="Spark drops them without a warning; read again later, such a source starts over.",
            do="Nothing, if it is meant to go. Otherwise give the source the name it had.",
            silent=True,
        )
    for name in asked:
        if name not in known:
            yield reason(
                RULE,
                Verdict.COMPATIBLE,
                f"Source {name} is new to the checkpoint.",
                where,
                why="With an offset log of version 2 it begins at its initial position.",
                do="Nothing.",
            )
