"""Turns a change in place of a flow's checkpoint into a new one, with the next number.

A declarative pipeline uses the highest number, and leaves the others as they are. So it is best
to put the changed checkpoint beside the old one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from floodmark.changes.carry.checkpoint_files import belonging
from floodmark.changes.carry.rehome import (
    is_operator_metadata,
    moved_operator_metadata,
    moved_schema_log,
)
from floodmark.changes.plan import EMPTY, Plan, Precondition
from floodmark.changes.plan.steps import (
    TARGET,
    DeleteFile,
    RestoreFile,
    Step,
    WriteFile,
    copy,
    write,
)
from floodmark.checkpoint.layout import FileInfo
from floodmark.checkpoint.relative_path import RelativePath
from floodmark.connectors.delta.offset import is_schema_log
from floodmark.storage.files import Files


def can_be_beside(change: Plan) -> bool:
    """Whether a change can be put beside: restored files cannot, as a plan has one origin."""
    steps = change.steps
    return bool(steps) and not any(isinstance(one, RestoreFile) for one in steps)


def plan_beside(files: Files, listed: Iterable[FileInfo], change: Plan, new: str) -> Plan:
    """Turn a change in place into a new checkpoint at `new`; the old folder stays unchanged."""
    mine = {one.path: one for one in change.steps if one.place == TARGET}
    others = tuple(one for one in change.steps if one.place != TARGET)
    kept = _kept(files, (one for one in belonging(tuple(listed)) if one.path not in mine), new)
    made = (_made(one, new) for one in mine.values() if not isinstance(one, DeleteFile))
    return replace(
        change,
        title=f"{change.title}, as the flow's next checkpoint",
        origin=change.target,
        target=new,
        steps=(*kept, *made, *others),
        preconditions=(*change.preconditions, Precondition(EMPTY, f"{new} holds nothing yet")),
        notes=(
            f"The pipeline takes {new} up with its next run. {change.target} stays as it is.",
            *change.notes,
        ),
    )


def _kept(files: Files, listed: Iterable[FileInfo], new: str) -> Iterator[Step]:
    for file in listed:
        path = file.path
        if is_operator_metadata(path):
            data = moved_operator_metadata(files.read(RelativePath(path)), new)
            yield write(path, data, "the paths of its schemas lead to the new folder")
        elif is_schema_log(path):
            data = moved_schema_log(files.read(RelativePath(path)), new)
            yield write(path, data, "its path leads to the new folder")
        else:
            yield copy(path, "as it is", file.size)


def _made(step: Step, new: str) -> Step:
    if isinstance(step, WriteFile) and is_operator_metadata(step.path):
        return write(step.path, moved_operator_metadata(step.data, new), step.why)
    return replace(step, replaces=False)
