"""Offsets as a user hands them over: what `floodmark offsets` prints goes in again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from floodmark.checkpoint.model import Checkpoint
from floodmark.checkpoint.sources.kinds import SourceKind, is_kafka_form, kind_of
from floodmark.checkpoint.sources.offset import (
    BASE_INDEXES,
    SourceOffset,
    parse_delta_offset,
    parse_kafka_offset,
    parse_log_offset,
    parse_offset_text,
    render_json,
)
from floodmark.errors import MalformedFile, WrongUse


@dataclass(frozen=True)
class Move:
    """How a given offset of one source stands to the checkpoint's own."""

    back: bool = False
    forward: tuple[str, ...] = ()
    """In words: what lies between, and is never read."""


def compare(was: SourceOffset, text: str) -> Move:
    now = parse_offset_text(text)
    if was.offset is None or now == was.offset:
        return Move()
    if was.kind is SourceKind.KAFKA:
        return _compare_topics(parse_kafka_offset(was.offset), parse_kafka_offset(now))
    before, after = _place(was.kind, was.offset), _place(was.kind, now)
    if before is None or after is None:
        return Move(
            True,
            (f"what lies between the two offsets of source {was.id}, if the given one is later",),
        )
    if after > before:
        name = f"source {was.id} ({was.kind.value})"
        return Move(forward=(f"what lies between {was.text} and {text} of {name}",))
    return Move(back=True)


def _compare_topics(
    was: Mapping[str, Mapping[int, int]], now: Mapping[str, Mapping[int, int]]
) -> Move:
    forward, back = [], False
    for topic, partitions in now.items():
        for partition, at in partitions.items():
            stood = was[topic][partition]
            back = back or at < stood
            if at > stood:
                forward.append(
                    f"{at - stood:,} records of {topic} partition {partition}, from offset {stood} "
                    f"to {at - 1}"
                )
    return Move(back, tuple(forward))


def _place(kind: SourceKind, offset: Any) -> tuple[int, ...] | None:
    """Something that grows with the offset."""
    if kind is SourceKind.DELTA:
        place = parse_delta_offset(offset)
        # A first snapshot of a version comes before all later changes, and is not one of them.
        index = -1 if place.index in BASE_INDEXES else place.index
        return (0 if place.is_starting_version else 1, place.reservoir_version, index)
    if kind is SourceKind.FILE:
        return (parse_log_offset(offset),)
    return (offset,) if type(offset) is int else None


_PRINTED = "`floodmark offsets CP --json` prints what goes in here, to be edited."


def parse_given(data: bytes, checkpoint: Checkpoint, origin: str) -> dict[str, str]:
    """source → offset text. Partitions that are not named stay where they are."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise MalformedFile(
            f"{origin}: not a file of offsets", f"It is not JSON: {error}", _PRINTED
        ) from None
    batch = checkpoint.committed_batch
    sources = {} if batch is None else {s.id: s for s in checkpoint.sources_of(batch)}
    by_source = _by_source(value, sources, origin)
    return {name: _merged(sources, name, offset, origin) for name, offset in by_source.items()}


def _by_source(value: Any, sources: Mapping[str, SourceOffset], origin: str) -> dict[str, Any]:
    if isinstance(value, dict) and isinstance(value.get("sources"), list):
        named = [item for item in value["sources"] if isinstance(item, dict)]
        if all("id" in item for item in named):  # offsets --json
            return {str(item["id"]): item.get("offset") for item in named}
        value = next((item["offsets"] for item in named if item.get("kind") == "kafka"), None)
    if isinstance(value, dict) and value and value.keys() <= sources.keys():
        return value
    if is_kafka_form(value):
        kafka = [name for name, source in sources.items() if source.kind is SourceKind.KAFKA]
        fitting = [name for name in kafka if set(value) & set(sources[name].offset)] or kafka
        if len(fitting) == 1:
            return {fitting[0]: value}
    raise MalformedFile(
        f"{origin}: no offsets for this checkpoint",
        f"Its sources are {', '.join(sources) or 'none'}.",
        'Give {"0": OFFSET}, by source, or what `floodmark offsets CP --json` prints.',
    )


def _merged(sources: Mapping[str, SourceOffset], name: str, offset: Any, origin: str) -> str:
    source = sources.get(name)
    if source is None:
        raise WrongUse(
            f"{origin}: the checkpoint has no source {name!r}",
            f"Its sources are {', '.join(sources)}.",
            _PRINTED,
        )
    if source.offset is not None and not _same_form(offset, source.offset):
        raise WrongUse(
            f"{origin}: source {name} is {source.kind.value}, and this is no offset of that kind",
            do=_PRINTED,
        )
    if source.kind is SourceKind.KAFKA:
        return _merged_topics(source, offset, origin)
    return source.text or "" if offset == source.offset else render_json(offset)


def _merged_topics(source: SourceOffset, offset: dict[str, Any], origin: str) -> str:
    unknown = [topic for topic in offset if topic not in source.offset]
    if unknown:
        raise WrongUse(
            f"{origin}: the checkpoint has no topic {unknown[0]!r}",
            f"Source {source.id} has {', '.join(source.offset)}.",
            "Leave the topic out: a stream cannot be given one that it never read.",
        )
    for topic, partitions in offset.items():
        strange = [p for p in partitions if p not in source.offset[topic]]
        if strange:
            raise WrongUse(
                f"{origin}: {topic} has no partition {strange[0]} in the checkpoint",
                f"It has {', '.join(source.offset[topic])}. A partition that is new to the stream "
                "is read from its start.",
                "Leave the partition out.",
            )
    merged = {topic: {**at, **offset.get(topic, {})} for topic, at in source.offset.items()}
    for topic, partitions in merged.items():
        bad = [p for p, at in partitions.items() if at < 0]
        if bad:
            raise WrongUse(
                f"{origin}: {topic} partition {bad[0]} is {partitions[bad[0]]}",
                "-1 and -2 are values of startingOffsets; a checkpoint holds real offsets.",
                "Give the number of the first record to read.",
            )
    return source.text or "" if merged == source.offset else render_json(merged)


def _same_form(given: Any, held: Any) -> bool:
    # A given -1 or -2 is said to be no place in a topic, and not to be another source's.
    return (is_kafka_form(given) and is_kafka_form(held)) or kind_of(given) is kind_of(held)
