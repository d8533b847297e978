"""Finds a source that cannot be read again."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.rules.code.facts import Code
from floodmark.rules.finding import Finding, Rule, Severity
from floodmark.rules.start_inputs.situation import Situation

RULE = Rule(
    "FM207",
    "non-replayable-source",
    Severity.WARNING,
    finds="A socket source in a query that keeps a checkpoint or writes to more than a screen.",
    matters="A checkpoint holds offsets, not records: the batch in flight is read again from the "
    "source. A socket has forgotten it.",
    restart="The records of the batch in flight are lost, and the offsets of the checkpoint mean "
    "nothing to the new connection.",
    instead="Kafka, files or a Delta table; a socket for trying things only.",
)
_CANNOT = {
    "socket": "A socket forgets what it sent",
    "textsocket": "A socket forgets what it sent",
    "memory": "A memory stream ends with its process",
    "memorystream": "A memory stream ends with its process",
}


def check(code: Code) -> Iterator[Finding]:
    for stream in code.streams:
        if stream.started_at is None or not (stream.checkpoint or stream.keeps_output):
            continue
        for read in stream.reads:
            if read.format == "socket":
                yield RULE.finding(
                    code.path, "This query reads a socket, which cannot replay.", line=read.line
                )
    if code.dstreams.directories or code.dstreams.recoveries:
        for line in code.dstreams.sockets:
            yield RULE.finding(
                code.path,
                "socketTextStream cannot replay what was received before a crash.",
                line=line,
                do="Kafka or files; or spark.streaming.receiver.writeAheadLog.enable=true.",
            )


def check_start(situation: Situation) -> Iterator[Finding]:
    for source in situation.sources:
        reason = _CANNOT.get(source.kind)
        if reason is not None:
            yield RULE.finding(
                situation.location,
                f"pipeline {situation.pipeline} reads a {source.kind} source, which cannot be "
                "read again",
                why=f"{reason}, so the batch that a crash interrupts is lost, and a restart from "
                "the checkpoint fails.",
                do="Read from Kafka, files or a Delta table.",
            )
