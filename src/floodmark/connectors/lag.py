"""Asks the real sources how far a stream is behind them.

A kind with a known lag has a module `lag` beside its `offset`, with one function `lag`. If a source
does not answer, `error` has the reason, and the other sources are asked all the same. Callers pass
in the storage.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache

from floodmark.checkpoint.live_answers import SourcePlaces
from floodmark.checkpoint.model import Checkpoint
from floodmark.connectors.behind import SourceLag
from floodmark.connectors.live import Open, SourceToAsk
from floodmark.connectors.registry import about, kind_named
from floodmark.connectors.source import SourceOffset
from floodmark.errors import FloodmarkError
from floodmark.storage.files import Files


@dataclass(frozen=True)
class LagQuestion:
    """What a kind needs to compute the lag of one source."""

    source: SourceToAsk
    files: Files
    checkpoint: Checkpoint
    opened: Open
    places: SourcePlaces
    now_ms: int
    timeout: float = 15.0
    """How long a server may take to answer, in seconds."""
    kafka_config: Mapping[str, str] = field(default_factory=dict)
    """Settings for the brokers that the user names, and for no others."""
    planned: SourceOffset | None = None
    """Where the in-flight batch ends."""


TellLag = Callable[[LagQuestion], SourceLag]


@cache
def lag_of(kind: str) -> TellLag | None:
    known = kind_named(kind)
    if not known.tells_lag:
        return None
    package = type(known).__module__.removesuffix(".offset")
    tell: TellLag = importlib.import_module(f"{package}.lag").lag
    return tell


def done_batch(checkpoint: Checkpoint) -> int | None:
    """Return the last finished batch; Spark 2.1 wrote no commits, but planned the next batch."""
    if checkpoint.committed_batch is not None:
        return checkpoint.committed_batch
    latest = checkpoint.latest_batch
    return latest - 1 if latest else None


def next_positions(checkpoint: Checkpoint) -> tuple[SourceOffset, ...]:
    """Return where the next batch begins; an offset is None at the source's start."""
    done = done_batch(checkpoint)
    if done is not None:
        return checkpoint.sources_of(done)
    return tuple(_first(checkpoint, source) for source in checkpoint.sources)


def _first(checkpoint: Checkpoint, planned: SourceOffset) -> SourceOffset:
    try:
        first = about(planned).first_offset(checkpoint.initial.get(planned.id))
    except FloodmarkError:
        first = None  # the doctor reports damage
    return SourceOffset(planned.id, planned.kind, first, None)


def tell_lags(questions: Iterable[LagQuestion]) -> tuple[SourceLag, ...]:
    return tuple(_lag_of_source(question) for question in questions)


def _lag_of_source(question: LagQuestion) -> SourceLag:
    source = question.source.position
    disputed = question.checkpoint.disputed.get(source.id)
    if disputed is not None:
        return SourceLag(source.id, source.kind, error=disputed)
    tell = lag_of(source.kind)
    if tell is None:
        name = about(source).shown_as or source.kind
        note = f"floodmark cannot ask a source of this kind ({name})."
        return SourceLag(source.id, source.kind, notes=(note,))
    try:
        return tell(question)
    except FloodmarkError as error:
        parts = (part.rstrip(".") for part in (error.what, error.why, error.do) if part)
        return SourceLag(source.id, source.kind, error=". ".join(parts) + ".")
