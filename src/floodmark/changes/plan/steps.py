"""Defines the steps of a plan: one dataclass for each operation.

A step that runs twice has the same result as once. `plan_parsing` makes steps from JSON and checks
them; the names of the fields are the keys of that JSON.
"""

from __future__ import annotations

import base64 as encoding
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from floodmark.errors import EditedPlan
from floodmark.wire import to_wire

if TYPE_CHECKING:  # a plan without such a step needs nothing of the state's codecs
    from floodmark.statestore.rewrite.target import StateTarget

TARGET, SINK = "target", "sink"
"""The place that a step changes: the plan's target, or the file sink's log in its output folder."""
_KEYS = (*("path", "why", "origin", "text", "base64", "size", "replaces", "place", "mode", "how"),)
_UNSAID = {"replaces": False, "place": TARGET}


@dataclass(frozen=True)
class Step:
    """The fields that every operation has."""

    do: ClassVar[str]
    path: str
    """The path of the changed file or folder, relative to its location."""
    why: str
    """The reason, in a few words."""
    size: int | None = field(default=None, kw_only=True)
    """The file's size in bytes after the step."""
    replaces: bool = field(default=False, kw_only=True)
    """True where the path already has content, which is kept until `floodmark forget`."""
    place: str = field(default=TARGET, kw_only=True)
    """The location: `target`, or `sink` for the file sink's log."""


@dataclass(frozen=True)
class WriteFile(Step):
    do = "write"
    text: str | None = None
    """The content, if it is text."""
    base64: str | None = None
    """The content, if it is not text."""
    mode: int | None = None
    """The file's mode, as a backup has it, if the storage has modes."""

    @property
    def data(self) -> bytes:
        if self.text is not None:
            return self.text.encode()
        return encoding.b64decode(self.base64 or "")


@dataclass(frozen=True)
class CopyFile(Step):
    do = "copy"
    origin: str
    """The file's path in the plan's origin."""


@dataclass(frozen=True)
class RestoreFile(Step):
    do = "restore"
    origin: str
    """The path of the content in the backup repository."""
    mode: int | None = None
    """The file's mode when it was stored, if the storage has modes."""


@dataclass(frozen=True)
class DeleteFile(Step):
    do = "delete"


@dataclass(frozen=True)
class RewriteState(Step):
    """Rewrites an operator's state; everything below `path` belongs to this step."""

    do = "rewrite-state"
    how: StateTarget | Mapping[str, Any]
    """The new state. A mapping is from an earlier floodmark: such a step can be taken back, but
    not executed."""

    @property
    def target(self) -> StateTarget:
        if not isinstance(self.how, Mapping):
            return self.how
        raise EditedPlan(
            f"{self.path}: an earlier floodmark made this plan",
            "It described state steps in another form.",
            "Nothing was changed by this command. Plan again.",
        )


@dataclass(frozen=True)
class TakeSnapshot(Step):
    """Takes a backup: `path` is the repository."""

    do = "snapshot"


OPERATIONS: Mapping[str, type[Step]] = {
    kind.do: kind
    for kind in (WriteFile, CopyFile, RestoreFile, DeleteFile, RewriteState, TakeSnapshot)
}


def write(
    path: str, data: bytes, why: str, replaces: bool = False, place: str = TARGET
) -> WriteFile:
    try:
        text: str | None = data.decode("utf-8")
    except UnicodeDecodeError:
        text = None
    binary = None if text is not None else encoding.b64encode(data).decode("ascii")
    return WriteFile(path, why, text, binary, size=len(data), replaces=replaces, place=place)


def copy(path: str, why: str, size: int, origin: str | None = None) -> CopyFile:
    return CopyFile(path, why, origin or path, size=size)


def delete(path: str, why: str, place: str = TARGET) -> DeleteFile:
    return DeleteFile(path, why, replaces=True, place=place)


def rewrite(target: StateTarget, why: str) -> RewriteState:
    return RewriteState(f"state/{target.operator}", why, target)


def content_of(step: Step, read: Callable[[str], bytes]) -> bytes:
    """Return a file's content after the step; `read` returns the origin's files."""
    if isinstance(step, WriteFile):
        return step.data
    assert isinstance(step, CopyFile)
    return read(step.origin)


def step_to_json(step: Step) -> dict[str, Any]:
    """Return a step as JSON without default values, as a plan may have very many steps."""
    fields = {key: getattr(step, key, None) for key in _KEYS}
    said = {
        key: to_wire(value)
        for key, value in fields.items()
        if value is not None and _UNSAID.get(key) != value
    }
    return {"do": step.do, **said}
