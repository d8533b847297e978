"""Reads offsets that a user gives, in the form that `floodmark offsets` prints."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from floodmark.checkpoint.model import Checkpoint
from floodmark.connectors.kafka.offset import is_kafka_form
from floodmark.connectors.registry import about, kind_of
from floodmark.connectors.source import Move, SourceOffset, parse_offset_text
from floodmark.errors import MalformedFile, WrongUse


def compare(was: SourceOffset, text: str) -> Move:
    """How the given offset stands to where the source was."""
    now = parse_offset_text(text)
    if was.offset is None or now == was.offset:
        return Move()
    return about(was).compare(was, text, now)


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
        kafka = [name for name, source in sources.items() if about(source).has_topics]
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
            f"{origin}: source {name} is {source.kind}, and this is no offset of that kind",
            do=_PRINTED,
        )
    return about(source).merged(source, offset, origin)


def _same_form(given: Any, held: Any) -> bool:
    # A given -1 or -2 is said to be no place in a topic, and not to be another source's.
    return (is_kafka_form(given) and is_kafka_form(held)) or kind_of(given) == kind_of(held)
