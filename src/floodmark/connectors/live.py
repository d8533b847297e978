"""Asks the real sources what they still have.

A kind that can be asked has a module `live` beside its `offset`. `doctor --sources` asks without
Spark; a start asks with Spark's own clients and credentials. Callers pass in the clients and the
storage.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple

from floodmark.checkpoint.live_answers import (
    Bounds,
    LiveAnswers,
    SnapshotLine,
    SourcePlaces,
    TableLog,
    Timeline,
)
from floodmark.checkpoint.model import Checkpoint
from floodmark.connectors.registry import kind_named
from floodmark.connectors.source import SourceOffset
from floodmark.errors import FloodmarkError
from floodmark.storage.files import Files

Open = Callable[[str], Files]
AskKafka = Callable[[Mapping[str, str], Iterable[str]], Mapping[str, Mapping[int, Bounds]]]
"""A source's options and topics → the bounds of the topics that exist."""
IN_THE_LOG = "`floodmark batches CP` shows the times that the log holds."


@dataclass(frozen=True)
class SourceToAsk:
    position: SourceOffset
    """Where the next batch begins; its offset is None at the source's start."""
    options: Mapping[str, str] = field(default_factory=dict)
    """The options from the code, the last start note or the user; keys in lower case."""


@dataclass(frozen=True)
class Question:
    """What a kind needs to ask the real source what it still has."""

    source: SourceToAsk
    files: Files
    checkpoint: Checkpoint
    ask_kafka: AskKafka
    opened: Open
    done: int | None = None
    """The last entry of file sources that counts as read, instead of the offset's."""


@dataclass(frozen=True)
class TimeQuestion:
    """What a kind needs to find where a source stood at a time."""

    source: SourceToAsk
    time_ms: int
    places: SourcePlaces
    """The locations that the user gives."""
    opened: Open


@dataclass(frozen=True)
class PlaceAtTime:
    """The position of a source at a time that the offset log no longer holds."""

    text: str
    lost: Sequence[str] = ()
    notes: Sequence[str] = ()


class Live(NamedTuple):
    """The functions of a kind's `live` module."""

    ask: Callable[[Question], LiveAnswers]
    """Asks what the real source still has."""
    place_at: Callable[[TimeQuestion], PlaceAtTime] | None


@cache
def live_of(kind: str) -> Live | None:
    known = kind_named(kind)
    if not known.can_be_asked:
        return None
    package = type(known).__module__.removesuffix(".offset")
    module = importlib.import_module(f"{package}.live")
    return Live(module.ask, getattr(module, "place_at", None))


def ask_sources(
    files: Files,
    checkpoint: Checkpoint,
    sources: Iterable[SourceToAsk],
    ask_kafka: AskKafka,
    opened: Open,
    done: int | None = None,
) -> LiveAnswers:
    """Return the answers of all sources that can be asked; `silent` names the others."""
    kafka: dict[str, Mapping[str, Mapping[int, Bounds]]] = {}
    tables: dict[str, TableLog] = {}
    inputs: dict[str, tuple[str, ...]] = {}
    lines: dict[str, SnapshotLine] = {}
    timelines: dict[str, Timeline] = {}
    silent: dict[str, str] = {}
    remedies: dict[str, str] = {}
    for source in sources:
        if source.position.id in checkpoint.disputed:
            # A rule of its own reports it. Asking the wrong source would give a wrong answer.
            silent[source.position.id] = "its kind is not clear"
            remedies[source.position.id] = (
                f"Name its kind: --source-kind {source.position.id}=KIND."
            )
            continue
        live = live_of(source.position.kind)
        if live is None:
            continue
        try:
            found = live.ask(Question(source, files, checkpoint, ask_kafka, opened, done))
        except FloodmarkError as error:
            silent[source.position.id] = error.what.rstrip(".")
            if error.do:
                remedies[source.position.id] = error.do
            continue
        kafka |= found.kafka
        tables |= found.tables
        inputs |= found.inputs
        lines |= found.lines
        timelines |= found.timelines
    return LiveAnswers(kafka, tables, inputs, silent, remedies, lines=lines, timelines=timelines)
