"""Compares the sources of new code with those of the checkpoint: count, kinds and topics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from floodmark.checkpoint.model import Checkpoint
from floodmark.connectors.registry import about, look_alikes
from floodmark.connectors.source import SourceOffset
from floodmark.errors import WouldLose


@dataclass(frozen=True)
class Declared:
    """One source of the new code, in plan order."""

    kind: str
    topics: tuple[str, ...] = ()
    """Kafka: what it subscribes to; empty where that is a pattern."""


def check_sources(
    checkpoint: Checkpoint,
    declared: Sequence[Declared],
    app: str,
    topics: Mapping[str, str],
) -> tuple[str, ...]:
    """What agrees, in words. Raises at the first source that does not."""
    sources = checkpoint.sources
    if len(declared) != len(sources):
        raise WouldLose(
            f"{app} has {len(declared)} sources, the checkpoint {len(sources)}",
            "Offsets belong to sources by their order: Spark refuses another number of them.",
            "`floodmark migrate CP NEW --app APP.py` carries it over to other sources; or begin "
            "with a start file: --without-state.",
        )
    pairs = zip(sources, declared, strict=True)
    return tuple(
        _check(app, source, new, topics, source.id in checkpoint.said_kinds)
        for source, new in pairs
    )


def _check(
    app: str, source: SourceOffset, new: Declared, topics: Mapping[str, str], is_said: bool
) -> str:
    is_other = is_said and new.kind in look_alikes(source.kind)
    if is_other or not about(source).reads_as(new.kind):
        raise WouldLose(
            f"{app}: source {source.id} was {source.kind}, and is {new.kind} now",
            "The new source would misread the old one's offset, or fail on it.",
            "Keep the order and the kinds of the sources.",
        )
    if about(source).has_topics and new.topics and source.offset is not None:
        before = {topics.get(topic, topic) for topic in source.offset}
        gone = sorted(before - set(new.topics))
        if gone:
            raise WouldLose(
                f"{app}: source {source.id} no longer reads topic {gone[0]}",
                f"The checkpoint has {', '.join(sorted(before))}; the rest of it is never read.",
                "Subscribe to it, or say where it went: --map-topic OLD=NEW.",
            )
        return f"{app} reads Kafka topic {', '.join(new.topics)}, as the checkpoint does."
    return f"{app} reads {new.kind}, as the checkpoint does."
