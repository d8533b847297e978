"""Finds a checkpoint inside the query's output folder."""

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
    matters="Readers of the output also read the checkpoint's files; VACUUM and lifecycle rules of "
    "the output delete them.",
    restart="A vacuumed checkpoint lacks files, and the query fails or starts over.",
    instead="A folder beside the output; or, for Delta, _checkpoints below it.",
)


def check(code: Code) -> Iterator[Finding]:
    for stream in code.streams:
        checkpoint = stream.checkpoint
        if checkpoint is None or stream.folders is None:
            continue
        inside, output = stream.folders
        folder = output.rstrip("/") + "/"
        below = inside.rstrip("/")[len(folder) :]
        if inside.startswith(folder) and below[:1] not in ("", "_", "."):
            shown = checkpoint.value.pattern.replace("{}", "…")
            yield RULE.finding(
                code.path,
                f"The checkpoint {shown} is inside the output folder.",
                line=checkpoint.line,
            )
