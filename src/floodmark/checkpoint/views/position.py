"""Shows where a batch's sources stand: in words, and as the option that starts a stream there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from floodmark.checkpoint.layout import OFFSETS
from floodmark.checkpoint.model import Checkpoint
from floodmark.checkpoint.offsets import OffsetEntry
from floodmark.checkpoint.text import moment
from floodmark.connectors.registry import kind_named
from floodmark.connectors.source import SourceOffset, StartOption, parse_offset_text
from floodmark.errors import BatchPurged, CannotRead, MalformedFile, NoAnswer, WrongUse
from floodmark.screen import ShownByFields


@dataclass(frozen=True)
class SourcePosition:
    id: str
    """Its number in the plan, or its name."""
    kind: str
    """kafka, delta, file, and so on."""
    offset: Any
    """Its position at the end of the batch."""
    option: StartOption | None
    """The option that starts a new stream there, if the source has one."""
    note: str | None
    """What the option alone does not say, or why there is no option."""
    began: Any = None
    """Where batch 0 began, by `sources/<id>/0`; None if that file does not say."""


@dataclass(frozen=True, repr=False)
class Position(ShownByFields):
    """The position of each source at the end of a batch."""

    batch: int
    """The batch."""
    committed: bool
    """Whether the batch is finished."""
    time_ms: int | None
    """The time when it was planned."""
    sources: tuple[SourcePosition, ...]
    """The position of each source after the batch."""

    @property
    def starting_offsets(self) -> str:
        """The value for the source's starting option; refuses if several sources have one."""
        return starting_option(self).form


_LISTED = "`floodmark batches CP` lists them."


def position(checkpoint: Checkpoint, batch: int) -> Position:
    entry = checkpoint.offsets[batch]
    return Position(
        batch,
        batch in checkpoint.commit_ids,
        entry.metadata.batch_timestamp_ms if entry.metadata else None,
        tuple(
            _disputed(source, checkpoint.disputed[source.id])
            if source.id in checkpoint.disputed
            else _source_position(source, source.id in checkpoint.said_kinds)
            for source in checkpoint.sources_of(batch)
        ),
    )


def choose_batch(checkpoint: Checkpoint, batch: int | None, at_ms: int | None) -> int:
    """Return the requested batch: by number, by time, or the last committed one."""
    if batch is not None and at_ms is not None:
        raise WrongUse("--batch and --at both choose a batch", do="Give one of them.")
    if at_ms is not None:
        batch = _last_committed_at(checkpoint, at_ms)
    elif batch is None:
        batch = _last_committed(checkpoint)
    _require_readable(checkpoint, batch)
    return batch


def _last_committed(checkpoint: Checkpoint) -> int:
    if checkpoint.committed_batch is not None:
        return checkpoint.committed_batch
    refuse_lost_offsets(checkpoint)
    if checkpoint.latest_batch is None:
        raise NoAnswer(
            f"{checkpoint.path}: no batch was planned yet, so there is no offset",
            do="Wait until its query has planned one.",
        )
    raise NoAnswer(
        f"{checkpoint.path}: no batch is committed",
        "Its first batch is still running, or died."
        if checkpoint.latest_batch == 0
        else "There is no commit log: Spark 2.1 wrote none, or it was removed.",
        f"Choose a batch yourself, for example --batch {checkpoint.latest_batch}.",
    )


def _last_committed_at(checkpoint: Checkpoint, at_ms: int) -> int:
    times = {
        batch: entry.metadata.batch_timestamp_ms
        for batch in checkpoint.commit_ids
        if (entry := checkpoint.offsets.get(batch)) and entry.metadata
    }
    reached = [batch for batch, time_ms in times.items() if time_ms <= at_ms]
    if reached:
        return max(reached)
    if not times:
        return _last_committed(checkpoint)
    oldest = min(times)
    if oldest == 0:
        raise NoAnswer(
            f"{moment(at_ms)} is before the stream began",
            f"Batch 0 was planned at {moment(times[0])}.",
            "Choose a later time, or batch 0.",
        )
    raise BatchPurged(
        f"no batch of {moment(at_ms)} is logged; the oldest is batch {oldest}, "
        f"planned at {moment(times[oldest])}",
        "Spark deletes old entries (spark.sql.streaming.minBatchesToRetain).",
        f"Choose a later time, or batch {oldest}.",
    )


def _require_readable(checkpoint: Checkpoint, batch: int) -> None:
    entry = checkpoint.offsets.get(batch)
    if entry is not None:
        _require_sound_offsets(checkpoint.path, batch, entry)
        return
    checkpoint.refuse_broken_offsets(
        batch, "`floodmark doctor CP` says what to do about it; --batch N shows another batch."
    )
    if batch < 0:
        raise WrongUse(f"there is no batch {batch}", "Batches are numbered from 0.", _LISTED)
    if not checkpoint.offset_ids:
        raise offsets_lost(checkpoint)
    if batch > checkpoint.offset_ids[-1]:
        raise NoAnswer(
            f"batch {batch} is not planned yet; the newest is batch {checkpoint.offset_ids[-1]}",
            do=_LISTED,
        )
    raise BatchPurged(
        f"batch {batch} is not logged",
        f"The log holds batches {checkpoint.offset_ids[0]} to {checkpoint.offset_ids[-1]}; Spark "
        "deletes old entries (spark.sql.streaming.minBatchesToRetain).",
        _LISTED,
    )


def refuse_lost_offsets(checkpoint: Checkpoint) -> None:
    """Raise if batches were planned, and no entry shows where the sources stand."""
    hidden = any(item.path == OFFSETS for item in checkpoint.unexamined)
    if checkpoint.latest_batch is None and (hidden or checkpoint.committed_batch is not None):
        raise offsets_lost(checkpoint)


def refuse_broken_newest(checkpoint: Checkpoint) -> None:
    """Raise if the entry that shows the sources and settings is lost or cannot be read."""
    refuse_lost_offsets(checkpoint)
    if checkpoint.latest_batch is not None:
        checkpoint.refuse_broken_offsets(
            checkpoint.latest_batch, "`floodmark doctor CP` says what to do about it."
        )


def offsets_lost(checkpoint: Checkpoint) -> BatchPurged | CannotRead:
    for item in checkpoint.unexamined:
        if item.path == OFFSETS:
            return CannotRead(
                f"{checkpoint.path}/{OFFSETS} was not examined: {item.reason}",
                "Which batches were planned is not known.",
                "Put the folder itself in its place, or make it readable. "
                "`floodmark doctor CP` says more.",
            )
    committed = checkpoint.committed_batch
    return BatchPurged(
        f"{checkpoint.path}: there is no offset entry",
        "No batch was planned yet."
        if committed is None
        else f"commits/{committed} exists, so the folder offsets/ was lost.",
        "`floodmark doctor CP` says what to do about it.",
    )


def _require_sound_offsets(path: str, batch: int, entry: OffsetEntry) -> None:
    try:
        for _, text in entry.offsets:
            if text is not None:
                parse_offset_text(text)
    except MalformedFile as error:
        raise MalformedFile(
            f"{path}/offsets/{batch} cannot be read",
            error.what,
            "`floodmark doctor CP` says what to do about it; --batch N shows another batch.",
        ) from None


def _source_position(source: SourceOffset, is_sure: bool) -> SourcePosition:
    option, note = _option(source)
    doubt = kind_named(source.kind).doubt
    if doubt is not None and option is not None and not is_sure:
        note = doubt.format(source.id)
    return SourcePosition(source.id, source.kind, source.offset, option, note)


def _disputed(source: SourceOffset, why: str) -> SourcePosition:
    return SourcePosition(source.id, source.kind, source.offset, None, why)


def _option(source: SourceOffset) -> tuple[StartOption | None, str | None]:
    if source.text is None:
        return None, "This source had no offset yet in this batch. Start it as you did at first."
    return kind_named(source.kind).starting_option(source)


def with_starts(found: Position, starts: Mapping[str, bytes]) -> Position:
    """Return the position with the start of each source.

    `starts` has the content of `sources/<id>/0` by the source's id.
    """
    sources = (replace(one, began=_began(one, starts.get(one.id))) for one in found.sources)
    return replace(found, sources=tuple(sources))


def _began(source: SourcePosition, initial: bytes | None) -> Any:
    if initial is None:
        return None
    try:
        return kind_named(source.kind).first_offset(initial)
    except MalformedFile:
        return None  # `doctor` reports it; the position of the stream does not depend on it


def of_source(found: Position, source: str | None) -> Position:
    """Return the position of one source only; None keeps them all."""
    if source is None:
        return found
    chosen = tuple(item for item in found.sources if item.id == source)
    if not chosen:
        ids = ", ".join(item.id for item in found.sources) or "none"
        raise WrongUse(
            f"there is no source {source!r}",
            f"The batch has sources: {ids}.",
            "Name one of them with --source.",
        )
    return replace(found, sources=chosen)


def starting_option(found: Position, source: str | None = None) -> StartOption:
    """Return the one option to print; refuse if there is none, or several to choose from."""
    candidates = of_source(found, source).sources
    usable = [item for item in candidates if item.option is not None]
    if not candidates:
        raise NoAnswer(f"batch {found.batch} has no source, so there is no offset to print")
    if not usable:
        first = candidates[0]
        raise NoAnswer(
            f"source {first.id} ({first.kind}) has no starting offsets to print",
            first.note or "",
            "`floodmark upgrade CP NEW` carries such a source over in a new checkpoint.",
        )
    if len(usable) > 1:
        names = ", ".join(f"{item.id} ({item.kind})" for item in usable)
        raise WrongUse(
            f"{len(usable)} sources have starting offsets: {names}", do="Choose one with --source."
        )
    assert usable[0].option is not None
    return usable[0].option
