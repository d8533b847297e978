"""Shows how a replayed batch changed the state, and compares that state with the checkpoint's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from floodmark.checkpoint.model import Checkpoint
from floodmark.errors import FloodmarkError, MalformedFile, StateFileMissing, StatePurged
from floodmark.screen import line_text
from floodmark.statestore.compare import StateDifference
from floodmark.statestore.diff import StateDiff, diff_state
from floodmark.statestore.one_key import diff_key
from floodmark.statestore.open import open_state
from floodmark.statestore.same_bytes import have_same_bytes
from floodmark.statestore.view import StateView, with_partitions
from floodmark.storage.files import Files

Key = Mapping[str, Any]


@dataclass(frozen=True)
class StoreChanges:
    """The keys of one store that a batch added, changed or removed."""

    operator: int
    """The stateful operator."""
    store: str
    """The store's name."""
    keys: StateDiff
    """The keys that the batch touched."""

    __repr__ = line_text


@dataclass(frozen=True)
class StateMatch:
    """Whether a batch left the same state on the fork as in the checkpoint."""

    matches: bool | None
    """None where there is nothing to compare with."""
    differences: tuple[StateDifference, ...] = ()
    """`before` is the checkpoint's state, `after` the replay's."""
    why: str = ""
    """The reason why there is nothing to compare with."""


def store_changes(
    fork: Files, now: Checkpoint, batch: int, key: Key | None, limit: int
) -> tuple[StoreChanges, ...]:
    """Return what the batch changed, store by store, on the fork on which it just ran."""
    found = []
    for after in _stores(fork, now, batch):
        before = with_partitions(after, ())
        if batch > 0 and _had(now, after.operator, batch):
            before = open_state(fork, now, after.operator, after.store, batch - 1)
        one = _diff(before, after, key, limit)
        if one is not None:
            found.append(StoreChanges(after.operator, after.store, one))
    return tuple(found)


def state_match(
    fork: Files, now: Checkpoint, files: Files, checkpoint: Checkpoint, batch: int, limit: int
) -> StateMatch:
    """Compare the fork's state after the batch with the checkpoint's own, key by key."""
    if not now.state_operators and not checkpoint.state_operators:
        return StateMatch(None, (), "The query keeps no state, so there is none to compare.")
    if batch not in checkpoint.commit_ids:
        return StateMatch(None, (), f"Batch {batch} was not committed, so it left no state.")
    differences = []
    for after in _stores(fork, now, batch):
        try:
            before = open_state(files, checkpoint, after.operator, after.store, batch)
            if have_same_bytes(before, after):
                continue
            keys = diff_state(before, after, limit)
        except (StatePurged, StateFileMissing, MalformedFile) as error:
            return StateMatch(
                None, (), f"The checkpoint's own state of batch {batch}: {error.what}"
            )
        except FloodmarkError as error:
            differences.append(StateDifference(after.operator, after.store, None, error.what))
            continue
        if keys.differ:
            differences.append(StateDifference(after.operator, after.store, keys, None))
    return StateMatch(not differences, tuple(differences))


def narrowed(match: StateMatch, key: Key) -> StateMatch:
    """Return the same answer, but show only the differing keys that have these fields."""
    shown = []
    for one in match.differences:
        if one.keys is not None:
            mine = tuple(c for c in one.keys.first if _has(c.key, key))
            shown.append(replace(one, keys=replace(one.keys, first=mine)))
        else:
            shown.append(one)
    return StateMatch(match.matches, tuple(shown), match.why)


def _has(key: Key, wanted: Key) -> bool:
    return all(key.get(name) == value for name, value in wanted.items() if name in key)


def _diff(before: StateView, after: StateView, key: Key | None, limit: int) -> StateDiff | None:
    return diff_state(before, after, limit) if key is None else diff_key(before, after, key)


def _stores(files: Files, checkpoint: Checkpoint, batch: int) -> Iterator[StateView]:
    for operator in checkpoint.state_operators:
        first = open_state(files, checkpoint, operator.operator, None, batch)
        for store in first.stores:
            yield open_state(files, checkpoint, operator.operator, store, batch)


def _had(checkpoint: Checkpoint, operator: int, version: int) -> bool:
    """Whether an operator had state at a version: a new operator has none."""
    return any(
        file.operator == operator and file.version <= version for file in checkpoint.state_files
    )
