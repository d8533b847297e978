"""Finds a changed topic, table or code of a sink."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.checkpoint.conf_keys import CHECKPOINT_OPTION
from floodmark.checkpoint.outline import PARTITIONED_BY, TABLE
from floodmark.connectors.files.offset import FILE_SINKS
from floodmark.rules.finding import Rule, Severity
from floodmark.rules.restarts.comparison import Comparison, change_words, option_changes
from floodmark.rules.restarts.reason import Reason, Verdict, reason

RULE = Rule(
    "FM316",
    "sink-target-changed",
    Severity.ADVICE,
    finds="A sink of the same kind with other options, another table or other columns in "
    "partitionBy than at the last start.",
    matters="The target of a sink may change; Spark promises only that the query starts. Files "
    "that are partitioned in two ways cannot be read as one table.",
    restart="The query starts. Rows go to the new place from the next batch on. Delta refuses "
    "other partition columns than its table has.",
    instead="Nothing, if the new place is meant. Files with other partition columns need a new "
    "folder and a new checkpoint.",
)


_UNNOTED = frozenset({PARTITIONED_BY, TABLE})
_DELTA = "delta"
_IGNORED = frozenset({CHECKPOINT_OPTION, "queryname"})


def check(comparison: Comparison) -> Iterator[Reason]:
    last, new = comparison.last, comparison.new
    if last is None or last.sink != new.sink:
        return
    for key, old, now in option_changes(last.sink_options, new.sink_options):
        if key in _IGNORED or (key == "path" and new.sink in FILE_SINKS):
            continue
        if key in _UNNOTED and old is None:
            continue  # notes of earlier releases do not tell
        if key == PARTITIONED_BY and new.sink in (*FILE_SINKS, _DELTA):
            yield _partitioned(new.sink, old or "", now or "")
            continue
        yield reason(
            RULE,
            Verdict.COMPATIBLE,
            f"The sink's {change_words(key, old, now)}.",
            "the sink",
        )


def _partitioned(sink: str, old: str, now: str) -> Reason:
    what = f"The output is partitioned by {now or 'nothing'}, and was by {old or 'nothing'}."
    if sink == _DELTA:
        return reason(
            RULE,
            Verdict.UNKNOWN,
            what,
            "the sink",
            why="Delta refuses to write other partition columns than its table has.",
            do="Write into another table, or set it as it was.",
        )
    return reason(
        RULE,
        Verdict.UNKNOWN,
        what,
        "the sink",
        why="It starts without a warning, and writes folders of the new columns beside those of "
        "the old. Spark then cannot read the output: 'Conflicting partition column names'.",
        do="Set it as it was, or write into a new folder, with a new checkpoint. If nobody reads "
        "the output as a whole: --accept sink-target-changed (`check`), --allow "
        "sink-target-changed (`run`).",
        silent=True,
    )
