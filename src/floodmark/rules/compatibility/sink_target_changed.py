"""Finds another topic, table or code of a sink."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.checkpoint.conf_keys import CHECKPOINT_OPTION
from floodmark.connectors.files.offset import FILE_SINKS
from floodmark.rules.finding import Rule, Severity
from floodmark.rules.restarts.comparison import Comparison, change_words, option_changes
from floodmark.rules.restarts.reason import Reason, Verdict, reason

RULE = Rule(
    "FM316",
    "sink-target-changed",
    Severity.ADVICE,
    finds="A sink of the same kind with other options than at the last start.",
    matters="The target of a sink may change; Spark promises only that the query starts.",
    restart="It starts. Rows go to the new place from the next batch on.",
    instead="Nothing.",
)


_IGNORED = frozenset({CHECKPOINT_OPTION, "queryname"})


def check(comparison: Comparison) -> Iterator[Reason]:
    last, new = comparison.last, comparison.new
    if last is None or last.sink != new.sink:
        return
    for key, old, now in option_changes(last.sink_options, new.sink_options):
        if key in _IGNORED or (key == "path" and new.sink in FILE_SINKS):
            continue
        yield reason(
            RULE,
            Verdict.COMPATIBLE,
            f"The sink's {change_words(key, old, now)}.",
            "the sink",
        )
