"""Other sources than the old code had, in a new checkpoint: offsets and folders, put in order.

A source that stays keeps its offsets and its own files, under the place it has now. One that
is new has no offset, so that Spark begins it, or one that says where. One that is gone has
nothing there. Pure but for reading what the plan copies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from floodmark.changes.steps import CopyFile, Step, WriteFile, content_of, copy, write
from floodmark.checkpoint.layout import OFFSETS, SOURCES
from floodmark.checkpoint.offsets import OffsetEntry, parse_offsets, render_offsets
from floodmark.connectors.delta.offset import is_schema_log
from floodmark.connectors.source import parse_offset_text, render_json

Read = Callable[[str], bytes]


@dataclass(frozen=True)
class KeptSource:
    """A source that goes on where it stood."""

    id: str
    """What the new offset log calls it."""
    old_id: str
    folder: str
    """Below sources/ of the new checkpoint."""
    old_folder: str
    without_topics: frozenset[str] = frozenset()
    """Topics of Kafka that it reads no more."""


@dataclass(frozen=True)
class NewSource:
    """A source that begins."""

    id: str
    folder: str
    begins: str
    """A sentence: where it begins, and who says so."""
    offset: str | None = None
    """The text that every entry has for it; None: Spark asks the source itself."""
    initial: bytes | None = None
    """What `sources/<folder>/0` holds: where Kafka begins, or the files that count as seen."""


@dataclass(frozen=True)
class SourceChange:
    sources: tuple[KeptSource | NewSource, ...]
    """In the order of the new code."""
    notes: tuple[str, ...] = ()
    options: Mapping[str, object] = field(default_factory=dict)
    """As the plan keeps them."""

    @property
    def kept(self) -> tuple[KeptSource, ...]:
        return tuple(one for one in self.sources if isinstance(one, KeptSource))

    @property
    def new(self) -> tuple[NewSource, ...]:
        return tuple(one for one in self.sources if isinstance(one, NewSource))


def with_sources(steps: Sequence[Step], change: SourceChange, read: Read) -> Iterator[Step]:
    """The steps of a new checkpoint, for the sources that its code has now."""
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
        # The source's own path stands in it, and Delta compares it.
        data = data.replace(f'/{SOURCES}/{old}"'.encode(), f'/{SOURCES}/{new}"'.encode())
    return write(path, data, step.why)
