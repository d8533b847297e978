"""Offsets as a user hands them over: what `floodmark offsets` prints goes in again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from floodmark.checkpoint.model import Checkpoint
from floodmark.checkpoint.sources import SourceKind, SourceOffset, kind_of, render_json
from floodmark.errors import MalformedFile, WrongUse

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
    if kind_of(value) is SourceKind.KAFKA:
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
    if source.offset is not None and kind_of(offset) is not kind_of(source.offset):
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
