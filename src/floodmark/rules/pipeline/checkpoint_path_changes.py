"""Finds a checkpoint path that changes with every start."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.checkpoint.conf_keys import DEFAULT_CHECKPOINT_LOCATION
from floodmark.rules.code.changing_paths import changing_calls
from floodmark.rules.code.facts import Code
from floodmark.rules.finding import Finding, Rule, Severity

RULE = Rule(
    "FM204",
    "checkpoint-path-changes",
    Severity.ERROR,
    finds="A time, a random part or a process id in the checkpoint's path; or a default "
    "checkpoint folder for a query without a name, which then gets a random one.",
    matters="The query never finds the checkpoint it wrote.",
    restart="Each start is a first start: state is empty, and records are skipped or read again.",
    instead="A path that stays the same for the life of the query, and a version that you "
    "change yourself: …/checkpoints/sales-v2.",
)


def check(code: Code) -> Iterator[Finding]:
    options = [
        stream.checkpoint for stream in code.streams if stream.checkpoint and stream.keeps_output
    ]
    options += code.dstreams.directories
    for option in options:
        changing = changing_calls(option.value)
        if changing:
            yield RULE.finding(
                code.path,
                f"The checkpoint's path contains {changing[0]}(), so the path is new at every "
                "start.",
                line=option.line,
            )
    if code.conf(DEFAULT_CHECKPOINT_LOCATION) is None:
        return
    for stream in code.streams:
        named = stream.checkpoint or stream.misspelt_checkpoint or stream.query_name
        if named or not stream.options_known:
            continue
        if stream.started_at and stream.keeps_output:
            yield RULE.finding(
                code.path,
                f"The query has no name, so its folder below {DEFAULT_CHECKPOINT_LOCATION} is a "
                "random one.",
                line=stream.started_at,
                do='Give it a name, .queryName("sales"), or a checkpointLocation of its own.',
            )
