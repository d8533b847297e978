"""A source that cannot give the same data again, under a checkpoint that promises recovery."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.engine.look import Objection, Situation

UNREPLAYABLE = "unreplayable-source"
NAMES = (UNREPLAYABLE,)
_CANNOT = {
    "socket": "A socket forgets what it sent",
    "textsocket": "A socket forgets what it sent",
    "memory": "A memory stream ends with its process",
    "memorystream": "A memory stream ends with its process",
}


def judge(situation: Situation) -> Iterator[Objection]:
    for source in situation.query.sources:
        reason = _CANNOT.get(source.kind)
        if reason is not None:
            yield Objection(
                UNREPLAYABLE,
                f"pipeline {situation.pipeline} reads a {source.kind} source, which cannot be "
                "read again",
                f"{reason}, so the batch that a crash interrupts is lost, and a restart from the "
                "checkpoint fails.",
                "Read from Kafka, files or a Delta table.",
            )
