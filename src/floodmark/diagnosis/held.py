"""Gathers a checkpoint's data for the compatibility rules; starts nothing."""

from __future__ import annotations

from pathlib import Path

from floodmark.checkpoint.model import Checkpoint
from floodmark.checkpoint.outline import OperatorOutline
from floodmark.checkpoint.views.position import refuse_broken_newest
from floodmark.connectors.files.live import seen_file
from floodmark.connectors.registry import about
from floodmark.errors import FloodmarkError, require_state_extra
from floodmark.rules.restarts.held_checkpoint import HeldCheckpoint
from floodmark.state.shapes.schema import StateSchema
from floodmark.statestore.open import open_state, operator_outline, operator_schemas
from floodmark.statestore.view import StateView
from floodmark.storage.files import Files, local_path
from floodmark.storage.last_start import acting_note

_TIME_WINDOW = '"spark.timeWindow":true'


def gather_held(files: Files, checkpoint: Checkpoint, look: bool = True) -> HeldCheckpoint:
    """Return the sources, plan, state schemas and settings of a checkpoint.

    Without `look` no state is read: the plan of the old code shows its windows.
    """
    # Without its newest entry a used checkpoint looks like a new one, which fits any code.
    refuse_broken_newest(checkpoint)
    held = held_operators(files, checkpoint)
    note = acting_note(files, checkpoint.committed_batch)
    # A plan shows more about windows than a key does, without reading the state.
    known = not look or (note is not None and note.get("tree") is not None)
    return HeldCheckpoint(
        checkpoint,
        held,
        note,
        places_of(files.root),
        seen_files(files, checkpoint),
        {} if known else seen_windows(files, checkpoint, held),
        {one.operator: _schemas(files, checkpoint, one.operator) for one in held},
    )


def _schemas(files: Files, checkpoint: Checkpoint, operator: int) -> dict[str, StateSchema]:
    try:
        return operator_schemas(files, checkpoint, operator)
    except FloodmarkError:
        return {}  # the doctor reports damage


def places_of(root: str) -> tuple[str, ...]:
    """Return a checkpoint's locations: the full path, and the path with its links followed."""
    local = local_path(root)
    if local is None:
        return (root,)
    # Spark writes a path as it was given; a reader may resolve its links.
    return str(Path(local).absolute()), str(Path(local).resolve())


def seen_files(files: Files, checkpoint: Checkpoint) -> dict[int, str]:
    found = {
        at: seen_file(files, checkpoint, source.id)
        for at, source in enumerate(checkpoint.sources)
        if about(source).lists_files
    }
    return {at: path for at, path in found.items() if path is not None}


def seen_windows(
    files: Files, checkpoint: Checkpoint, held: tuple[OperatorOutline, ...]
) -> dict[int, int]:
    """Return the length of the windows in each operator's state, in microseconds, by one key."""
    found = {}
    for operator in held:
        if any(_TIME_WINDOW in one.key_json for one in operator.stores.get("default", ())):
            require_state_extra()
            try:
                length = _window_in(open_state(files, checkpoint, operator.operator))
            except FloodmarkError:
                continue  # the doctor reports damage
            if length is not None:
                found[operator.operator] = length
    return found


def _window_in(view: StateView) -> int | None:
    for partition in view.partitions:
        for batch in view.partition_batches(partition):
            key = batch.column(1)[0]
            names = [field.name for field in key.type]
            window = key["window"] if "window" in names else None
            if window is None or not window.is_valid:
                return None
            return int(window["end"].value) - int(window["start"].value)
    return None


def held_operators(files: Files, checkpoint: Checkpoint) -> tuple[OperatorOutline, ...]:
    found = []
    for operator in checkpoint.state_operators:
        try:
            found.append(operator_outline(files, checkpoint, operator.operator))
        except FloodmarkError:
            # The doctor reports damage; here the schema is just unknown.
            found.append(OperatorOutline(operator.operator, operator.name, {}))
    return tuple(found)
