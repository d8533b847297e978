"""From where to where the newest batch reads, source by source, in words."""

from __future__ import annotations

from typing import Any

from floodmark.checkpoint.model import Checkpoint
from floodmark.checkpoint.sources.kinds import SourceKind
from floodmark.checkpoint.sources.offset import BASE_INDEXES, SourceOffset, render_json

_PARTITIONS_SHOWN = 6


def source_rows(found: Checkpoint) -> list[tuple[str, str, str]]:
    before = {}
    if len(found.offset_ids) > 1:
        before = {source.id: source for source in found.sources_of(found.offset_ids[-2])}
    return [
        (f"source {source.id}", _kind_words(source), words)
        for source in found.sources
        for words in advance(source, before.get(source.id))
    ]


def _kind_words(source: SourceOffset) -> str:
    return "memory or socket" if source.kind is SourceKind.MEMORY else source.kind.value


def advance(source: SourceOffset, before: SourceOffset | None) -> list[str]:
    """From where to where the newest batch reads: a line a topic, else one line."""
    if source.offset is None:
        return ["no offset yet"]
    start = before.offset if before and before.kind is source.kind else None
    if source.kind in (SourceKind.KAFKA, SourceKind.EVENTHUBS):
        return [
            f"{topic}   {_partitions(partitions, (start or {}).get(topic, {}))}"
            for topic, partitions in source.offset.items()
        ]
    if source.kind is SourceKind.DELTA:
        return [_arrow(_delta(start), _delta(source.offset))]
    if source.kind is SourceKind.FILE:
        entries = _arrow(_log_offset(start), _log_offset(source.offset))
        return [f"log entry {entries}"]
    return [_arrow(None if start is None else plain(start), plain(source.offset))]


def _arrow(start: str | None, end: str | None) -> str:
    return f"{end}" if start is None or start == end else f"{start} → {end}"


def _partitions(ends: dict[str, int], starts: dict[str, int]) -> str:
    ordered = sorted(ends.items(), key=lambda item: int(item[0]))
    shown = [
        f"{partition}: {_arrow(_number(starts.get(partition)), str(end))}"
        for partition, end in ordered[:_PARTITIONS_SHOWN]
    ]
    if len(ordered) > _PARTITIONS_SHOWN:
        shown.append(f"… and {len(ordered) - _PARTITIONS_SHOWN} more")
    return "   ".join(shown)


def _number(value: int | None) -> str | None:
    return None if value is None else str(value)


def _delta(offset: Any) -> str | None:
    if not isinstance(offset, dict):
        return None
    index = offset.get("index")
    words = f"version {offset.get('reservoirVersion')}"
    if not isinstance(index, int) or index not in BASE_INDEXES:
        words += f" file {index}"
    return words + (" of the first snapshot" if offset.get("isStartingVersion") else "")


def _log_offset(offset: Any) -> str | None:
    return str(offset.get("logOffset")) if isinstance(offset, dict) else plain(offset)


def plain(offset: Any) -> str | None:
    text = uncut(offset)
    return text if text is None or len(text) <= 90 else text[:89] + "…"


def uncut(offset: Any) -> str | None:
    """As Spark writes it, for whoever asks for the offsets themselves."""
    return offset if offset is None or isinstance(offset, str) else render_json(offset)
