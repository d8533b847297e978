"""Finds a query that writes its output into its own checkpoint."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.rules.code.facts import Code
from floodmark.rules.finding import Finding, Rule, Severity

RULE = Rule(
    "FM226",
    "output-inside-checkpoint",
    Severity.WARNING,
    finds="An output folder that is the query's checkpoint folder, or is inside it.",
    matters="The checkpoint cannot be copied, moved or deleted without the data. If output and "
    "checkpoint are the same folder, readers of the output also read the checkpoint's files.",
    restart="The query restarts, but a new checkpoint in this place means deleting the output.",
    instead="Use two separate folders: …/tables/orders and …/checkpoints/orders.",
)


def check(code: Code) -> Iterator[Finding]:
    for stream in code.streams:
        checkpoint = stream.checkpoint
        if checkpoint is None or stream.target is None or stream.folders is None:
            continue
        folder, output = stream.folders
        if f"{output.rstrip('/')}/".startswith(f"{folder.rstrip('/')}/"):
            shown = stream.target.pattern.replace("{}", "…")
            yield RULE.finding(
                code.path,
                f"The output {shown} is inside the checkpoint folder.",
                line=checkpoint.line,
            )
