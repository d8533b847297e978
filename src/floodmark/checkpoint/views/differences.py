"""Compares two checkpoints, or two batches of one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from floodmark.checkpoint.model import Checkpoint
from floodmark.connectors.registry import about
from floodmark.connectors.source import SourceOffset
from floodmark.screen import ShownInALine


@dataclass(frozen=True, repr=False)
class Difference(ShownInALine):
    """One place at which two checkpoints, or two batches, differ."""

    where: str
    """The field, the setting or the part of a source that differs."""
    left: Any
    """The value in the first checkpoint or batch; null if there is none."""
    right: Any
    """The value in the second checkpoint or batch; null if there is none."""


def diff_checkpoints(left: Checkpoint, right: Checkpoint) -> tuple[Difference, ...]:
    return tuple(_checkpoints(left, right))


def diff_batches(checkpoint: Checkpoint, left: int, right: int) -> tuple[Difference, ...]:
    return tuple(_batches(checkpoint, left, right))


def _checkpoints(left: Checkpoint, right: Checkpoint) -> Iterator[Difference]:
    yield from _fields(
        left,
        right,
        "kind",
        "query_id",
        "latest_batch",
        "committed_batch",
        "in_flight_batch",
        "watermark_ms",
        "offset_log_version",
        "commit_log_version",
    )
    yield from _sources(left.sources, right.sources)
    yield from _maps("conf", left.conf, right.conf)
    yield from _maps("state", _operators(left), _operators(right))


def _batches(checkpoint: Checkpoint, left: int, right: int) -> Iterator[Difference]:
    one, other = checkpoint.offsets[left].metadata, checkpoint.offsets[right].metadata
    committed = (left in checkpoint.commit_ids, right in checkpoint.commit_ids)
    if committed[0] != committed[1]:
        yield Difference("committed", *committed)
    if one and other:
        yield from _fields(one, other, "batch_timestamp_ms", "batch_watermark_ms")
        yield from _maps("conf", one.conf, other.conf)
    yield from _sources(checkpoint.sources_of(left), checkpoint.sources_of(right))


def _fields(left: object, right: object, *names: str) -> Iterator[Difference]:
    for name in names:
        one, other = getattr(left, name), getattr(right, name)
        if one != other:
            yield Difference(name, one, other)


def _sources(
    left: tuple[SourceOffset, ...], right: tuple[SourceOffset, ...]
) -> Iterator[Difference]:
    ones, others = ({source.id: source for source in side} for side in (left, right))
    for name in sorted({*ones, *others}):
        one, other = ones.get(name), others.get(name)
        where = f"source {name}"
        if one is None or other is None:
            yield Difference(where, one and one.kind, other and other.kind)
        elif one.kind != other.kind:
            yield Difference(f"{where} kind", one.kind, other.kind)
        else:
            yield from _offsets(where, one, other)


def _offsets(where: str, left: SourceOffset, right: SourceOffset) -> Iterator[Difference]:
    ones, others = _parts(left), _parts(right)
    if ones is None or others is None:
        # Values are compared, not texts: the order of JSON's keys does not matter.
        if left.offset != right.offset:
            yield Difference(f"{where} offset", left.offset, right.offset)
        return
    for part in sorted({*ones, *others}):
        one, other = ones.get(part), others.get(part)
        if one != other:
            yield Difference(" ".join((where, *part)), one, other)


def _parts(source: SourceOffset) -> dict[tuple[str, ...], Any] | None:
    return None if source.offset is None else about(source).parts(source.offset)


def _maps(where: str, left: Mapping[str, Any], right: Mapping[str, Any]) -> Iterator[Difference]:
    for key in sorted({*left, *right}):
        one, other = left.get(key), right.get(key)
        if one != other:
            yield Difference(f"{where} {key}", one, other)


def _operators(checkpoint: Checkpoint) -> dict[str, str]:
    return {
        str(operator.operator): f"{operator.name or 'operator'}, {operator.provider}, "
        f"{operator.partitions} partitions, stores {', '.join(operator.stores)}"
        for operator in checkpoint.state_operators
    }
