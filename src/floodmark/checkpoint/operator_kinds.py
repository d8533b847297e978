"""Kinds of stateful operators: which old operator a new one is, by kind and order. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

AGGREGATION, SESSION, DEDUP, JOIN = "aggregation", "session window", "deduplication", "join"
DEDUP_WITHIN = "deduplication within a watermark"
GROUPS, VARIABLES, LIMIT = "groups with state", "transformWithState", "limit"
UNKNOWN = "unknown"
_KINDS = {
    "stateStoreSave": AGGREGATION,
    "StatefulStreamlineAggregate": AGGREGATION,
    "sessionWindowStateStoreSaveExec": SESSION,
    "dedupe": DEDUP,
    "dedupeWithinWatermark": DEDUP_WITHIN,
    "symmetricHashJoin": JOIN,
    "globalLimit": LIMIT,
    "flatMapGroupsWithState": GROUPS,
    "applyInPandasWithState": GROUPS,
    "transformWithStateExec": VARIABLES,
    "transformWithStateInPandasExec": VARIABLES,
    "transformWithStateInPySparkExec": VARIABLES,
}


def kind_of(name: str) -> str:
    return _KINDS.get(name, UNKNOWN)


def unclear_kind(old: Sequence[str], new: Sequence[str]) -> str | None:
    """A kind of which both have operators, and nothing says which of them is which."""
    before, after = Counter(old), Counter(new)
    for kind in sorted(set(before) & set(after)):
        if before[kind] != after[kind] and max(before[kind], after[kind]) > 1:
            return kind
    return None


def paired(old: Sequence[str], new: Sequence[str]) -> list[int | None]:
    """For each new kind the place of the old operator that it is; None: it is new."""
    left = list(range(len(old)))
    found: list[int | None] = []
    for kind in new:
        at = next((at for at in left if old[at] == kind), None)
        if at is not None:
            left.remove(at)
        found.append(at)
    return found
