"""Finds a DStreams checkpoint that runs old code after a recovery."""

from __future__ import annotations

import re
from collections.abc import Iterator

from floodmark.rules.code.facts import Code
from floodmark.rules.finding import Finding, Rule, Severity

RULE = Rule(
    "FM220",
    "unversioned-dstream-checkpoint",
    Severity.ADVICE,
    finds="StreamingContext.getOrCreate on a fixed folder whose name has no version.",
    matters="A DStreams checkpoint holds the application itself: after a recovery the code saved "
    "there runs, not the code you deployed.",
    restart="Changed code is ignored, or fails to deserialise.",
    instead="A version in the folder's name that you change with the code; or Structured "
    "Streaming, whose checkpoints hold no code.",
)
_VERSION = re.compile(r"v?\d")


def check(code: Code) -> Iterator[Finding]:
    for recovery in code.dstreams.recoveries:
        literal = recovery.directory.literal
        if literal is not None and not _VERSION.search(literal.rstrip("/").rsplit("/", 1)[-1]):
            yield RULE.finding(
                code.path,
                f"getOrCreate({literal!r}) runs the code saved there, old or new.",
                line=recovery.line,
            )
