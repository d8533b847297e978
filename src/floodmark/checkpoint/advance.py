"""From where to where the newest batch reads, source by source, in words."""

from __future__ import annotations

from floodmark.checkpoint.model import Checkpoint
from floodmark.connectors.registry import kind_named
from floodmark.connectors.source import SourceOffset


def source_rows(found: Checkpoint) -> list[tuple[str, str, str]]:
    before = {}
    if len(found.offset_ids) > 1:
        before = {source.id: source for source in found.sources_of(found.offset_ids[-2])}
    return [
        (f"source {source.id}", kind_named(source.kind).shown_as or source.kind, words)
        for source in found.sources
        for words in advance(source, before.get(source.id))
    ]


def advance(source: SourceOffset, before: SourceOffset | None) -> list[str]:
    """From where to where the newest batch reads: a line a topic, else one line."""
    if source.offset is None:
        return ["no offset yet"]
    start = before.offset if before and before.kind == source.kind else None
    return kind_named(source.kind).explain(source.offset, start)
