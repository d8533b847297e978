"""Reorders offsets and folders in a new checkpoint whose code has other sources.

A source that stays keeps its offsets and its own files, under its new position. A new source has
no offset, so that Spark begins it, or a given one. A dropped source has nothing there. Pure,
except for reading what the plan copies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from floodmark.changes.plan.steps import CopyFile, Step, WriteFile, content_of, copy, write
from floodmark.checkpoint.layout import OFFSETS, SOURCES
from floodmark.checkpoint.offsets import OffsetEntry, parse_offsets, render_offsets
from floodmark.connectors.delta.offset import is_schema_log
from floodmark.connectors.source import parse_offset_text, render_json

Read = Callable[[str], bytes]


@dataclass(frozen=True)
class KeptSource:
    """A source that goes on from its position."""

    id: str
    """The source's name in the new offset log."""
    old_id: str
    folder: str
    """The source's folder below sources/ of the new checkpoint."""
    old_folder: str
    without_topics: frozenset[str] = frozenset()
    """Kafka topics that the source no longer reads."""


@dataclass(frozen=True)
class NewSource:
    """A source that the old code did not have."""

    id: str
    folder: str
    begins: str
    """A sentence that says where the source begins, and who decides that."""
    offset: str | None = None
    """The source's offset in every entry; None: Spark asks the source itself."""
    initial: bytes | None = None
    """The content of `sources/<folder>/0`: where Kafka begins, or the files that count as seen."""


@dataclass(frozen=True)
class SourceChange:
    sources: tuple[KeptSource | NewSource, ...]
    """The sources in the order of the new code."""
    notes: tuple[str, ...] = ()
    options: Mapping[str, object] = field(default_factory=dict)
    """The options that the plan stores."""

    @property
    def kept(self) -> tuple[KeptSource, ...]:
        return tuple(one for one in self.sources if isinstance(one, KeptSource))

    @property
    def new(self) -> tuple[NewSource, ...]:
        return tuple(one for one in self.sources if isinstance(one, NewSource))


def with_sources(steps: Sequence[Step], change: SourceChange, read: Read) -> Iterator[Step]:
    """Yield the steps of a new checkpoint for the sources of the new code."""
    folders = {one.old_folder: one.folder for one in change.kept}
    for step in steps:
        parts = step.path.split("/", 2)
        if parts[0] == OFFSETS:
            entry = entry_of(parse_offsets(content_of(step, read)), change)
            yield write(step.path, render_offsets(entry), f"{step.why}; for the new code's sources")
        elif parts[0] != SOURCES:
            yield step
        elif parts[1] in folders:
            yield _moved(step, parts[1], folders[parts[1]])
    for one in change.new:
        if one.initial is not None:
            yield write(f"{SOURCES}/{one.folder}/0", one.initial, one.begins)


def entry_of(entry: OffsetEntry, change: SourceChange) -> OffsetEntry:
    lines = []
    for one in change.sources:
        text = one.offset if isinstance(one, NewSource) else _kept_text(entry, one)
        # In an entry of version 2 a source without an offset has no line.
        if text is not None or entry.version == 1:
            lines.append((one.id, text))
    return replace(entry, offsets=tuple(lines))


def _kept_text(entry: OffsetEntry, one: KeptSource) -> str | None:
    text = entry.of(one.old_id)
    if text is None or not one.without_topics:
        return text
    offset = parse_offset_text(text)
    return render_json(
        {topic: at for topic, at in offset.items() if topic not in one.without_topics}
    )


def _moved(step: Step, old: str, new: str) -> Step:
    if old == new:
        return step
    path = f"{SOURCES}/{new}/{step.path.split('/', 2)[2]}"
    if isinstance(step, CopyFile):
        assert step.size is not None
        return copy(path, step.why, step.size, step.origin)
    assert isinstance(step, WriteFile)
    data = step.data
    if is_schema_log(step.path):
        # The entry contains the source's own path, which Delta compares.
        data = data.replace(f'/{SOURCES}/{old}"'.encode(), f'/{SOURCES}/{new}"'.encode())
    return write(path, data, step.why)
