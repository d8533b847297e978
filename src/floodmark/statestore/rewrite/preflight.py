"""Tries the first rows of each store on this machine's disk, before anything changes.

A stranger may have written a saved plan, or it may be for another state: this module refuses what
does not fit.
"""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Iterator

from floodmark.checkpoint.layout import store_folder
from floodmark.errors import BatchPurged, EditedPlan, NoAnswer
from floodmark.state.files.records import Records
from floodmark.statestore.rewrite.new_state import format_of, merged_rows
from floodmark.statestore.rewrite.old_rows import OldRows, OldState
from floodmark.statestore.rewrite.target import Part, StateTarget, layout_of
from floodmark.statestore.write import write_store
from floodmark.storage.files import WritableFiles, open_files

_TRIED_PARTITIONS = 16


def require_fits(target: StateTarget, old: OldState) -> None:
    """Refuse a target that the rows of the old state do not fit."""
    try:
        with tempfile.TemporaryDirectory(prefix="floodmark-trial-") as place:
            for part in target.parts:
                _try(target, part, old, open_files(place))
    except (NoAnswer, BatchPurged) as error:
        raise _does_not_fit(target, error.what) from error
    except (LookupError, TypeError, ValueError, ArithmeticError, AssertionError) as error:
        raise _does_not_fit(target, f"{type(error).__name__}: {error}") from error


def _does_not_fit(target: StateTarget, why: str) -> EditedPlan:
    return EditedPlan(
        f"state/{target.operator}: the plan does not fit the old state",
        why,
        "Nothing was changed. Plan again.",
    )


def _try(target: StateTarget, part: Part, old: OldState, files: WritableFiles) -> None:
    if not part.kept:
        layout_of(target, part)
    batches = [target.batch] if target.in_flight is None else [target.batch, target.in_flight]
    for batch in batches:
        found = None if part.given else old(part, batch)
        rows = [] if found is None else list(_first_rows(target, part, found))
        folder = store_folder(target.operator, 0, part.store)
        unique_id = target.unique_id(0, part.store)
        write_store(files, folder, target.version, rows, format_of(target, part.store), unique_id)


def _first_rows(target: StateTarget, part: Part, old: OldRows) -> Iterator[Records]:
    for partition in old.partitions[:_TRIED_PARTITIONS]:
        if not old.moves:
            piece = next((rows for rows in old.rows(partition) if len(rows)), None)
        else:
            placed = (rows for rows, _ in old.placed(partition) if len(rows))
            piece = next(placed, None)
            if piece is not None and part.recipe is not None and part.recipe.merge is not None:
                piece = next(itertools.chain(merged_rows(target, part, iter([piece])), [piece]))
        if piece is not None:
            yield piece
            return
