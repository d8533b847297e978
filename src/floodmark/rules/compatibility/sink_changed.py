"""Finds a changed kind of sink."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.connectors.files.offset import FILE_SINKS
from floodmark.rules.finding import Rule, Severity
from floodmark.rules.restarts.comparison import Comparison
from floodmark.rules.restarts.reason import Reason, Verdict, reason
from floodmark.rules.restarts.source_matching import may_be_one_folder

RULE = Rule(
    "FM314",
    "sink-changed",
    Severity.WARNING,
    finds="A sink of another kind than at the last start.",
    matters="The checkpoint records which batches are done, but not where they were written. Files "
    "of two kinds in one folder cannot be read as one table.",
    restart="The query starts. The new sink gets the batches from now on, and nothing that was "
    "written before.",
    instead="Nothing, if the old output stays where its readers look. To fill the new sink "
    "from the beginning, start on a new checkpoint. Files of another kind need a new folder.",
)


def check(comparison: Comparison) -> Iterator[Reason]:
    last, new = comparison.last, comparison.new
    if last is None or _family(last.sink) == _family(new.sink):
        return
    before, after = last.sink_options.get("path"), new.sink_options.get("path")
    if {last.sink, new.sink} <= FILE_SINKS and after and may_be_one_folder(before, after):
        yield _other_files(last.sink, new.sink)
        return
    # Spark's documentation rules this one out, though nothing in it fails.
    ruled_out = last.sink == "kafka" and new.sink in FILE_SINKS
    yield reason(
        RULE,
        Verdict.NEEDS_NEW_CHECKPOINT if ruled_out else Verdict.COMPATIBLE,
        f"The sink is {new.sink}, and was {last.sink}.",
        "the sink",
        silent=True,
        do="Spark's documentation does not allow it: start on a new checkpoint, from `floodmark "
        "upgrade` if the past is not wanted in the files."
        if ruled_out
        else None,
    )


def _other_files(before: str, now: str) -> Reason:
    return reason(
        RULE,
        Verdict.UNKNOWN,
        f"The files are {now}, and were {before}; they go to the same folder.",
        "the sink",
        why="It starts without a warning, and writes files of the new kind beside the old ones. "
        "Spark reads a folder as files of one kind: it fails at the others, or gives nulls.",
        do="Set it as it was, or write into a new folder, with a new checkpoint. If nobody reads "
        "the output as a whole: --accept sink-changed (`check`), --allow sink-changed (`run`).",
        silent=True,
    )


def _family(sink: str) -> str:
    return "foreach" if sink.lower().startswith("foreach") else sink
