"""Finds a checkpoint on one machine's disk."""

from __future__ import annotations

import re
from collections.abc import Iterator

from floodmark.rules.code.facts import Code
from floodmark.rules.finding import Finding, Rule, Severity
from floodmark.rules.start_inputs.situation import Situation

RULE = Rule(
    "FM203",
    "checkpoint-on-local-disk",
    Severity.WARNING,
    finds="A checkpoint at a file: URL, in a home folder, or on a cluster node's own disk, in "
    "code that does not set its master to local.",
    matters="On a cluster every executor has its own disk: the state of a partition is on the "
    "machine that ran it, and is lost with that machine.",
    restart="State files are not found on another node, and the query fails or starts over.",
    instead="A folder on storage that every node reaches: S3, HDFS, ABFS, a volume.",
)
_LOCAL = re.compile(
    r"file:|~|/home/|/Users/|/root/|/mnt/local|/local_disk|/databricks/driver|[A-Za-z]:[\\/]"
)
_ON_A_NODE = re.compile(r"file:/+(?!dbfs/|Volumes/|Workspace/)")
"""On Databricks any other path is on DBFS or on a volume."""
_TEMPORARY = re.compile(r"file:/*(private/)?(var/)?tmp(/|$)|file:/*dev/shm/")


def check(code: Code) -> Iterator[Finding]:
    if code.runs_locally:
        return
    options = [stream.checkpoint for stream in code.streams if stream.checkpoint]
    options += code.dstreams.directories
    for option in options:
        pattern = option.value.pattern
        if code.on_databricks and not _ON_A_NODE.match(pattern):
            continue
        if _LOCAL.match(pattern) and not _TEMPORARY.match(pattern):
            shown = pattern.replace("{}", "…")
            yield RULE.finding(
                code.path, f"The checkpoint is on a local disk: {shown}.", line=option.line
            )


def check_start(situation: Situation) -> Iterator[Finding]:
    if situation.location.startswith("file:") and not situation.master.startswith("local"):
        yield RULE.finding(
            situation.location,
            f"the checkpoint {situation.location} lies on a local disk, and the master is "
            f"{situation.master}",
            why="Each executor would write its state to its own disk, and a driver that starts on "
            "another machine would find no checkpoint.",
            do="Use storage that all machines reach: hdfs://, s3a://, abfss://, gs://. A disk that "
            "is mounted on all of them can be allowed.",
        )
