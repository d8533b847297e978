"""Compares every store of two checkpoints, or of two batches, key by key."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from floodmark.checkpoint.model import Checkpoint
from floodmark.errors import FloodmarkError
from floodmark.screen import ShownInALine
from floodmark.statestore.diff import StateDiff, diff_state
from floodmark.statestore.open import open_state
from floodmark.storage.files import Files


@dataclass(frozen=True)
class Side:
    files: Files
    checkpoint: Checkpoint
    batch: int | None
    """The batch; None for the last committed one."""


@dataclass(frozen=True, repr=False)
class StateDifference(ShownInALine):
    """How one store of two checkpoints, or of two batches, differs."""

    operator: int
    """The stateful operator."""
    store: str
    """The operator's store."""
    keys: StateDiff | None
    """The differences; None if the two cannot be compared."""
    reason: str | None
    """Why the two cannot be compared."""


def compare_state(left: Side, right: Side) -> tuple[StateDifference, ...]:
    """Return the stores that differ or cannot be compared, without the equal ones."""
    operators = sorted(_operators(left) | _operators(right))
    return tuple(
        difference
        for operator in operators
        for difference in _operator(left, right, operator)
        if difference.keys is None or difference.keys.differ
    )


def _operators(side: Side) -> set[int]:
    return {one.operator for one in side.checkpoint.state_operators}


def _operator(left: Side, right: Side, operator: int) -> Iterator[StateDifference]:
    try:
        first = open_state(left.files, left.checkpoint, operator, None, left.batch)
    except FloodmarkError as error:
        yield StateDifference(operator, "default", None, error.what)
        return
    for store in first.stores:
        try:
            one = open_state(left.files, left.checkpoint, operator, store, left.batch)
            other = open_state(right.files, right.checkpoint, operator, store, right.batch)
            yield StateDifference(operator, store, diff_state(one, other), None)
        except FloodmarkError as error:
            yield StateDifference(operator, store, None, error.what)
