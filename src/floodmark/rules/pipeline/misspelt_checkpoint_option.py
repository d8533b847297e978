"""Finds an option that is a misspelt checkpointLocation."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.rules.code.facts import Code
from floodmark.rules.code.spelling import is_misspelt
from floodmark.rules.finding import Finding, Rule, Severity
from floodmark.rules.start_inputs.situation import Situation

RULE = Rule(
    "FM201",
    "misspelt-checkpoint-option",
    Severity.ERROR,
    finds="writeStream.option() with a key close to checkpointLocation.",
    matters="Spark ignores keys it does not know, so the query does not resume from the directory "
    "you named.",
    restart="The query starts over, or fails because it has no checkpoint.",
    instead='.option("checkpointLocation", path)',
)


def check(code: Code) -> Iterator[Finding]:
    for stream in code.streams:
        for option in stream.options:
            if is_misspelt(option.key):
                yield RULE.finding(
                    code.path,
                    f"{option.key!r} is not an option of Spark; it is checkpointLocation.",
                    line=option.line,
                )


def check_start(situation: Situation) -> Iterator[Finding]:
    for key, value in situation.sink_options.items():
        if is_misspelt(key):
            yield RULE.finding(
                situation.location,
                f"pipeline {situation.pipeline}: the writer has an option {key!r}, which Spark "
                "ignores",
                why="A query's checkpoint is the option checkpointLocation; nothing would be kept "
                f"in {value}, and a restart would begin from zero.",
                do="Remove the option: the pipeline's own checkpoint is set for you.",
            )
