"""Finds a writer that names another checkpoint than its pipeline."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.checkpoint.places.plain_place import plain_place
from floodmark.rules.finding import Finding, Rule, Severity
from floodmark.rules.start_inputs.situation import Situation

RULE = Rule(
    "FM402",
    "second-checkpoint",
    Severity.ERROR,
    finds="A checkpointLocation of the writer that differs from the pipeline's checkpoint.",
    matters="A query has one checkpoint.",
    restart="The pipeline's checkpoint replaces the writer's, and the stream goes on from another "
    "place than the code says.",
    instead="Keep one of the two.",
)


def check(situation: Situation) -> Iterator[Finding]:
    named = situation.writer_checkpoint
    if named is not None and plain_place(named) != plain_place(situation.location):
        yield RULE.finding(
            situation.location,
            f"pipeline {situation.pipeline}: the writer's checkpointLocation is {named}, the "
            f"pipeline's is {situation.location}",
            why="A query has one checkpoint; the pipeline's would replace the writer's.",
        )
