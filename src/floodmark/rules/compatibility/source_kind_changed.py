"""Finds another kind of source in a source's place."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.checkpoint.layout import SOURCES
from floodmark.connectors.registry import about, family, look_alikes
from floodmark.rules.finding import Rule, Severity
from floodmark.rules.restarts.comparison import Comparison
from floodmark.rules.restarts.reason import Reason, Verdict, reason

RULE = Rule(
    "FM302",
    "source-kind-changed",
    Severity.ERROR,
    finds="A source whose offsets in the checkpoint are of another kind than the new code reads.",
    matters="Only the source that wrote an offset can read it.",
    restart="The new source fails to parse the offset, or misreads it where the shapes agree.",
    instead="Go on with a new checkpoint: `floodmark upgrade --without-state` keeps the "
    "positions of the "
    "sources that stay.",
)


def check(comparison: Comparison) -> Iterator[Reason]:
    held, new = comparison.checkpoint.sources, comparison.new.sources
    if len(held) != len(new) or comparison.named_sources():
        return
    for at, (source, now) in enumerate(zip(held, new, strict=True)):
        before = source.kind
        if about(source).any_form or source.offset is None or now.kind in look_alikes(source.kind):
            before = _noted(comparison, at)
        if before and family(before) != family(now.kind):
            yield reason(
                RULE,
                Verdict.NEEDS_NEW_CHECKPOINT,
                f"Source {at} is {now.kind} in the new code; the checkpoint's offset is "
                f"{before}'s.",
                f"{SOURCES}/{source.id}",
            )


def _noted(comparison: Comparison, at: int) -> str:
    """Where the offset does not tell its kind, the note of the last start does."""
    last = comparison.last
    if last is None or len(last.sources) != len(comparison.new.sources):
        return ""
    return last.sources[at].kind
