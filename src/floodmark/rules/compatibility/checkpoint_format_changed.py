"""Finds another format of the state's file names."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.checkpoint.conf_keys import STATE_FORMAT
from floodmark.checkpoint.layout import COMMITS
from floodmark.rules.finding import Rule, Severity
from floodmark.rules.restarts.comparison import Comparison
from floodmark.rules.restarts.reason import Reason, Verdict, reason
from floodmark.rules.restarts.spark_defaults import version_of

RULE = Rule(
    "FM344",
    "checkpoint-format-changed",
    Severity.ERROR,
    finds="spark.sql.streaming.stateStore.checkpointFormatVersion set to another version "
    "than the checkpoint's state has.",
    matters="Version 2 puts a unique id into each file's name and into the commit log. "
    "Spark before 4.3 takes the version from the session.",
    restart="The query fails: 4.0 and 4.1 at the commit log, 4.2 in the first batch, on state "
    "files that are missing or cannot be committed. 4.3 and later keep the checkpoint's "
    "version.",
    instead="Set it to the checkpoint's version, or let `migrate --state-format` or "
    "`floodmark convert` make a checkpoint with the other.",
)


def check(comparison: Comparison) -> Iterator[Reason]:
    commit = comparison.checkpoint.latest_commit
    if not comparison.is_stateful or commit is None or _keeps(comparison):
        return
    held = "2" if commit.state_unique_ids else "1"
    chosen = comparison.new.conf.get(STATE_FORMAT, "1")
    if chosen != held:
        yield reason(
            RULE,
            Verdict.NEEDS_MIGRATION,
            f"The session says state format {chosen}; the checkpoint's state is of format {held}.",
            f"{COMMITS}/{comparison.checkpoint.committed_batch}",
            migrate=(f"--state-format {chosen}",),
        )


def _keeps(comparison: Comparison) -> bool:
    return version_of(comparison.new.spark_version) >= (4, 3)
