"""Matches old stateful operators to new ones, by kind and order. Pure."""

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


def names_of(*kinds: str) -> frozenset[str]:
    """Spark's names of the operators of these kinds."""
    return frozenset(name for name, kind in _KINDS.items() if kind in kinds)


def kind_of(name: str) -> str:
    return _KINDS.get(name, UNKNOWN)


def unclear_kind(old: Sequence[str], new: Sequence[str]) -> str | None:
    """Return a kind of which old and new code have several operators, so that none can be
    matched.
    """
    before, after = Counter(old), Counter(new)
    for kind in sorted(set(before) & set(after)):
        if before[kind] != after[kind] and max(before[kind], after[kind]) > 1:
            return kind
    return None


def paired(old: Sequence[str], new: Sequence[str]) -> list[int | None]:
    """Return for each new kind the index of the matching old operator; None if it is new."""
    left = list(range(len(old)))
    found: list[int | None] = []
    for kind in new:
        at = next((at for at in left if old[at] == kind), None)
        if at is not None:
            left.remove(at)
        found.append(at)
    return found
