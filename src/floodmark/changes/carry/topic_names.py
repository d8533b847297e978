"""Renames Kafka topics in offsets and in the record of where a stream began."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from floodmark.checkpoint.offsets import OffsetEntry
from floodmark.connectors.registry import about, read_source_offset
from floodmark.connectors.source import parse_offset_text, render_json
from floodmark.errors import WrongUse


def parse_topics(pairs: Sequence[str]) -> tuple[tuple[str, str], ...]:
    found = []
    for pair in pairs:
        old, equals, new = pair.partition("=")
        if not (old and equals and new):
            raise WrongUse(
                f"--map-topic {pair!r} is not OLD=NEW",
                do="Write it as --map-topic orders=orders-v2.",
            )
        found.append((old, new))
    return tuple(found)


def require_topics(entry: OffsetEntry, topics: Mapping[str, str]) -> None:
    there = {topic for _, text in entry.offsets if text for topic in _topics(text)}
    unknown = [old for old in topics if old not in there]
    if unknown:
        known = ", ".join(sorted(there)) or "none"
        raise WrongUse(
            f"--map-topic {unknown[0]}: the checkpoint has no such topic",
            f"Its topics: {known}.",
            "OLD is the name that the checkpoint has.",
        )
    after = [topics.get(topic, topic) for topic in sorted(there)]
    twice = sorted({topic for topic in after if after.count(topic) > 1})
    if twice:
        raise WrongUse(
            f"--map-topic: two topics would both become {twice[0]}",
            "Offsets of two topics cannot be those of one.",
            "Give each topic a name of its own.",
        )


def _topics(text: str) -> tuple[str, ...]:
    return about(read_source_offset("", text)).topics(parse_offset_text(text))


def map_entry(entry: OffsetEntry, topics: Mapping[str, str]) -> OffsetEntry:
    return replace(
        entry,
        offsets=tuple(
            (name, text if text is None else _map_text(text, topics))
            for name, text in entry.offsets
        ),
    )


def _map_text(text: str, topics: Mapping[str, str]) -> str:
    source = read_source_offset("", text)
    kind = about(source)
    if not any(topic in topics for topic in kind.topics(source.offset)):
        return text
    return render_json(kind.renamed(source.offset, topics))
