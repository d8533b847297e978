"""Finds a changed output mode."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.rules.finding import Rule, Severity
from floodmark.rules.restarts.comparison import TRANSFORMS, Comparison, operator_kind
from floodmark.rules.restarts.reason import Reason, Verdict, reason

RULE = Rule(
    "FM313",
    "output-mode-changed",
    Severity.WARNING,
    finds="Another output mode (append, update, complete) than at the last start.",
    matters="Spark keeps no output mode in the checkpoint. The state of an aggregation is "
    "the same in all three.",
    restart="The query starts. From update to append, groups that went out already go out once "
    "more when the watermark closes them; to complete, all that the state still holds goes "
    "out. transformWithState refuses.",
    instead="Nothing, if the sink can receive the rows once more.",
)


def check(comparison: Comparison) -> Iterator[Reason]:
    last, new = comparison.last, comparison.new
    if last is None or last.output_mode.lower() == new.output_mode.lower():
        return
    if any(operator_kind(one) in TRANSFORMS for one in new.operators):
        return  # the operator's metadata has the mode, and another rule compares it
    yield reason(
        RULE,
        Verdict.COMPATIBLE,
        f"The output mode is {new.output_mode.lower()}, and was {last.output_mode.lower()}.",
        "the writer",
        silent=True,
    )
