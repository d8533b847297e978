"""Finds a checkpoint file manager that takes a write which failed for done."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.checkpoint.conf_keys import FILE_MANAGER_CLASS
from floodmark.rules.finding import Finding, Rule, Severity
from floodmark.rules.start_inputs.situation import ABORTABLE, Situation

RULE = Rule(
    "FM414",
    "silent-file-manager",
    Severity.ADVICE,
    finds=f"A query whose {FILE_MANAGER_CLASS} is {ABORTABLE}.",
    matters="It closes a file quietly: where the store refuses the write, or another run has "
    "written the file first, Spark logs a warning and goes on as if it were done. A batch then "
    "runs without its offsets being kept, and after a crash it may be planned anew with other "
    "offsets: a sink that knows the batch by its number skips the new one, and records are lost.",
    restart="Nothing tells of the missing file until it is read: `floodmark doctor` finds the gap.",
    instead="Let Hadoop be patient with the store (`fs.s3a.retry.limit`, `fs.s3a.attempts."
    "maximum`; by default it tries for minutes), keep one run per checkpoint by the lease of "
    f"`floodmark run`, or leave {FILE_MANAGER_CLASS} unset: the default is slower on S3 and stops "
    "the query at the first write that fails.",
)


def check(situation: Situation) -> Iterator[Finding]:
    if situation.file_manager == ABORTABLE:
        yield RULE.finding(
            situation.location,
            "its checkpoint file manager takes a write that the store refused for done, and says "
            f"so in Spark's log alone; `floodmark explain {RULE.name}` tells more",
        )
