"""Finds a changed folder of a file sink."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.connectors.files.offset import FILE_SINKS
from floodmark.rules.finding import Rule, Severity
from floodmark.rules.restarts.comparison import Comparison
from floodmark.rules.restarts.reason import Reason, Verdict, reason
from floodmark.rules.restarts.source_matching import is_same_folder, may_be_one_folder

RULE = Rule(
    "FM315",
    "sink-directory-changed",
    Severity.WARNING,
    finds="A file sink that writes to another path than at the last start.",
    matters="A file sink keeps a log of its batches beside the files, in _spark_metadata. "
    "Spark's documentation does not allow another folder.",
    restart="The query starts without a warning. The new folder holds the batches from now on, "
    "and a batch that was half written to the old folder may be in both.",
    instead="Keep the folder. If the output is to move, move it with its _spark_metadata, "
    "whose paths are absolute, or start on a new checkpoint.",
)


def check(comparison: Comparison) -> Iterator[Reason]:
    last, new = comparison.last, comparison.new
    if last is None or not {last.sink, new.sink} <= FILE_SINKS:
        return
    before, after = last.sink_options.get("path"), new.sink_options.get("path")
    if is_same_folder(before, after):
        return
    what = f"The files go to {after}; they went to {before}."
    if may_be_one_folder(before, after) and _has_the_batches(comparison):
        yield reason(
            RULE,
            Verdict.COMPATIBLE,
            what,
            "the sink",
            why="It starts: the log in that folder has the checkpoint's batches.",
            do="Nothing.",
        )
        return
    yield reason(RULE, Verdict.NEEDS_NEW_CHECKPOINT, what, "the sink", silent=True)


def _has_the_batches(comparison: Comparison) -> bool:
    done = comparison.checkpoint.committed_batch
    return done is not None and comparison.sink_batch == done
