"""Finds a checkpoint file manager that treats a failed write as done."""

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
    matters="It closes a file without an error. If the store refuses the write, or another run "
    "has written the file first, Spark only logs a warning and goes on as if the write were "
    "done. A batch can then run although its offsets were not stored. After a crash Spark "
    "may plan it again with other offsets: a sink that knows the batch by its number skips "
    "the new one, and records are lost.",
    restart="Nothing shows that the file is missing until Spark reads it. `floodmark doctor` "
    "finds the gap.",
    instead="Let Hadoop be patient with the store (`fs.s3a.retry.limit`, `fs.s3a.attempts."
    "maximum`; by default it tries for minutes), keep one run per checkpoint by the lease of "
    f"`floodmark run`, or leave {FILE_MANAGER_CLASS} unset: the default is slower on S3 and stops "
    "the query at the first write that fails.",
)


def check(situation: Situation) -> Iterator[Finding]:
    if situation.file_manager == ABORTABLE:
        yield RULE.finding(
            situation.location,
            "its checkpoint file manager treats a write that the store refused as done, and "
            f"only Spark's log says so; `floodmark explain {RULE.name}` says more",
        )
