"""The steps of a plan: a dataclass an operation.

Done twice, a step leaves what doing it once does. `plan_parsing` makes steps of JSON, and checks
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
    """What every operation says."""

    do: ClassVar[str]
    path: str
    """The file or folder that is changed, relative to its place."""
    why: str
    """Why, in a few words."""
    size: int | None = field(default=None, kw_only=True)
    """The bytes that the file has when the step is done."""
    replaces: bool = field(default=False, kw_only=True)
    """The path holds something now, which is kept until `floodmark forget`."""
    place: str = field(default=TARGET, kw_only=True)
    """Where it is: `target`, or `sink` for the file sink's log."""


@dataclass(frozen=True)
class WriteFile(Step):
    do = "write"
    text: str | None = None
    """The content, where it is text."""
    base64: str | None = None
    """The content, where it is not."""
    mode: int | None = None
    """Who may read the file, as a backup has it, where storage has modes."""

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
    """The path of its content in the backup repository."""
    mode: int | None = None
    """Who could read the file when it was stored, where storage has modes."""


@dataclass(frozen=True)
class DeleteFile(Step):
    do = "delete"


@dataclass(frozen=True)
class RewriteState(Step):
    """An operator's state is written again. All below `path` is this step's work."""

    do = "rewrite-state"
    how: StateTarget | Mapping[str, Any]
    """What the state is to be. A mapping is what an earlier floodmark wrote: such a step can be
    taken back, and not carried out."""

    @property
    def target(self) -> StateTarget:
        if not isinstance(self.how, Mapping):
            return self.how
        raise EditedPlan(
            f"{self.path}: an earlier floodmark made this plan",
            "It described its steps about state in another way.",
            "Nothing was changed by this command. Plan again.",
        )


@dataclass(frozen=True)
class TakeSnapshot(Step):
    """A backup: `path` is the repository."""

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
    """What a file has when the step is done; `read` gives the origin's files."""
    if isinstance(step, WriteFile):
        return step.data
    assert isinstance(step, CopyFile)
    return read(step.origin)


def step_to_json(step: Step) -> dict[str, Any]:
    """Without what is not said: a plan may have very many steps."""
    fields = {key: getattr(step, key, None) for key in _KEYS}
    said = {
        key: to_wire(value)
        for key, value in fields.items()
        if value is not None and _UNSAID.get(key) != value
    }
    return {"do": step.do, **said}
