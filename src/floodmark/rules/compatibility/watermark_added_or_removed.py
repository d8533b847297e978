"""Finds a watermark that was added or removed."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.checkpoint.plan.tree import PlanTree
from floodmark.rules.finding import Rule, Severity
from floodmark.rules.restarts.comparison import Comparison
from floodmark.rules.restarts.reason import Reason, Verdict, reason

RULE = Rule(
    "FM327",
    "watermark-added-or-removed",
    Severity.WARNING,
    finds="More or fewer withWatermark calls than at the last start.",
    matters="Without a watermark Spark never removes state; with one, it drops late rows.",
    restart="The query starts. A new watermark begins at zero, and removes old state as soon as "
    "it passes it. Without a watermark, state only grows.",
    instead="If you intend that: --accept watermark-added-or-removed (`check`), --allow "
    "watermark-added-or-removed (`run`). Otherwise `floodmark upgrade CP NEW --without-state` "
    "begins with an empty state.",
)
_WITHOUT_TIME = ("Aggregate", "Deduplicate", "Distinct", "GlobalLimit")


def check(comparison: Comparison) -> Iterator[Reason]:
    if comparison.last is None or comparison.last.tree is None:
        return
    old, new = comparison.last.tree, comparison.new.tree
    before, after = len(old.watermarks), len(new.watermarks)
    if before == after:
        return
    counts = _decides(old) or _decides(new)
    yield reason(
        RULE,
        Verdict.UNKNOWN if counts else Verdict.COMPATIBLE,
        f"The new code has {after or 'no'} watermark{'s' * (after > 1)}, and had "
        f"{before or 'none'}.",
        "the plan's watermark",
        do=None if counts else "Nothing: no state here depends on event time.",
        silent=True,
    )


def _decides(tree: PlanTree) -> bool:
    """Whether a step uses event time, so that it decides which rows are late and which state
    goes.
    """
    if any(step.kind not in _WITHOUT_TIME for step in tree.stateful):
        return True
    marked = {mark.column for mark in tree.watermarks}
    return bool(tree.stateful) and any(
        part in marked
        for step in tree.steps()
        for _, found in step.expressions
        for one in found
        for part in one.walk()
    )
