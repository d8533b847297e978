"""A checkpoint among the data it is about."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.rules.code.facts import Code
from floodmark.rules.finding import Finding, Rule, Severity

RULE = Rule(
    "FM224",
    "checkpoint-inside-output",
    Severity.WARNING,
    finds="A checkpoint below the query's own output folder, in a folder whose name begins with "
    "neither _ nor a dot.",
    matters="Whoever reads the output reads the checkpoint's files too; VACUUM and lifecycle "
    "rules of the output delete them.",
    restart="A vacuumed checkpoint lacks files, and the query fails or begins anew.",
    instead="A folder beside the output; or, for Delta, _checkpoints below it.",
)


def check(code: Code) -> Iterator[Finding]:
    for stream in code.streams:
        checkpoint = stream.checkpoint
        path = stream.option("path")
        output = stream.output or (path.value if path else None)
        if checkpoint is None or output is None or not checkpoint.value.known or not output.known:
            continue
        folder = output.pattern.rstrip("/") + "/"
        inside = checkpoint.value.pattern
        if inside.startswith(folder) and inside[len(folder)] not in "_.":
            yield RULE.finding(
                code.path,
                f"The checkpoint {inside} lies inside the output {output.pattern}.",
                line=checkpoint.line,
            )
