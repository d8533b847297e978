"""A change as data: what will be written, copied and deleted, why, and what must hold first.

A plan is made by a planner, printed, saved, compared, and carried out by `apply`. Its
digest tells a plan that was edited by hand; its fingerprint tells a checkpoint that has
moved since. Nothing in here touches storage.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any

from floodmark.errors import EditedPlan, WouldLose
from floodmark.screen import fields_text
from floodmark.statestore.rewrite.target import StateTarget
from floodmark.wire import json_text, to_wire

# The package's own names lead to every layer above; its version is all that is wanted.
RELEASE: str = import_module("floodmark").__version__
FORMAT = 1
WRITE, COPY, DELETE, RESTORE = "write", "copy", "delete", "restore"
REWRITE = "rewrite-state"
TARGET, SINK = "target", "sink"
"""The file sink's log, in its output folder."""


@dataclass(frozen=True)
class Step:
    """One file, or one operator's state. Done twice, it leaves what doing it once does."""

    do: str
    path: str
    why: str
    origin: str | None = None
    """copy: the file's path in the origin."""
    text: str | None = None
    """write: the content, where it is text."""
    base64: str | None = None
    """write: the content, where it is not."""
    size: int | None = None
    """The bytes that the file has when the step is done."""
    replaces: bool = False
    """The path holds something now, which is kept until `floodmark forget`."""
    place: str = TARGET
    """`sink` for the file sink's log, which lies with the output."""
    mode: int | None = None
    """restore: who could read the file when it was stored, where storage has modes."""
    how: StateTarget | Mapping[str, Any] | None = None
    """rewrite-state: what the state is to be. All below `path` is its work. A mapping is what an
    earlier floodmark wrote: it can be taken back, and not carried out."""

    @property
    def target(self) -> StateTarget:
        if isinstance(self.how, StateTarget):
            return self.how
        raise EditedPlan(
            f"{self.path}: an earlier floodmark made this plan",
            "It told its steps about state in another way.",
            "Nothing was changed by this command. Plan again.",
        )

    @property
    def data(self) -> bytes:
        if self.text is not None:
            return self.text.encode()
        return base64.b64decode(self.base64 or "")


def write(path: str, data: bytes, why: str, replaces: bool = False, place: str = TARGET) -> Step:
    try:
        text: str | None = data.decode("utf-8")
    except UnicodeDecodeError:
        text = None
    encoded = None if text is not None else base64.b64encode(data).decode("ascii")
    return Step(WRITE, path, why, None, text, encoded, len(data), replaces=replaces, place=place)


def copy(path: str, why: str, size: int, origin: str | None = None) -> Step:
    return Step(COPY, path, why, origin=origin or path, size=size)


def delete(path: str, why: str, place: str = TARGET) -> Step:
    return Step(DELETE, path, why, replaces=True, place=place)


def rewrite(target: StateTarget, why: str) -> Step:
    """An operator's state, made anew."""
    return Step(REWRITE, f"state/{target.operator}", why, how=target)


@dataclass(frozen=True)
class Precondition:
    """Checked when the plan is made and again when it is carried out."""

    name: str
    words: str


UNCHANGED = "origin-unchanged"
SAME_QUERY = "same-query"
SNAPSHOT_THERE = "snapshot-there"
NOT_IN_USE = "not-in-use"
NEEDED = "needs_accepted"
EMPTY = "target-empty"
FOLDER_MODE = "folder_mode"
"""restore: the option that says who could read the folder of the snapshot."""


@dataclass(frozen=True)
class Consequence:
    """What the change means for one kind of sink."""

    sink: str
    words: str
    loses_or_repeats: bool = False
    again: tuple[int, int] | None = None
    """The first and the last batch whose records the sink gets a second time."""
    skips: tuple[int, int] | None = None
    """Numbers of coming batches that the sink skips, whatever is in them."""
    fails_at: int | None = None
    """The batch at which the query then fails: the state of skipped batches is never computed."""
    lost: tuple[int, int] | None = None
    """Batches that are behind the stream, and that the sink does not have any more."""
    certain: bool = True
    """False where it depends on what nothing here can tell."""
    accept: str | None = None
    """The name by which the user has to accept it."""


@dataclass(frozen=True)
class Plan:
    verb: str
    title: str
    origin: str
    """The place that is read. A saved plan is carried out from any folder: it is absolute."""
    target: str
    """The place that is changed."""
    steps: tuple[Step, ...]
    preconditions: tuple[Precondition, ...]
    fingerprint: str
    standing: str
    """What the fingerprint stands for, in words."""
    block: int
    """The number in offsets/ that keeps Spark from starting while the change is under way."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """What the user chose."""
    notes: tuple[str, ...] = ()
    consequences: tuple[Consequence, ...] = ()
    sink: str | None = None
    """The file sink's output folder, where its log is changed as well."""
    floodmark: str = "plan"
    format: int = FORMAT
    made_by: str = RELEASE
    digest: str = ""

    __repr__ = fields_text

    @property
    def unaccepted(self) -> tuple[str, ...]:
        """What the plan risks and nobody has accepted yet, by name."""
        accepted = self.options.get("accept", ())
        return tuple(name for name in self.options.get(NEEDED, ()) if name not in accepted)

    @property
    def id(self) -> str:
        return self.digest[:16]

    @property
    def about_target(self) -> bool:
        """True where the fingerprint is the target's: it is changed, or filled from a backup."""
        return self.in_place or self.verb == "restore"

    @property
    def in_place(self) -> bool:
        """True where a checkpoint that is there is changed, and no new one made."""
        return all(condition.name != EMPTY for condition in self.preconditions)


def seal(plan: Plan) -> Plan:
    """The plan with its digest."""
    return replace(plan, digest=digest_of(_content(plan)))


def _content(plan: Plan) -> dict[str, Any]:
    value: dict[str, Any] = to_wire(plan)
    value["steps"] = [_short(step) for step in value["steps"]]
    return value


def _short(step: dict[str, Any]) -> dict[str, Any]:
    """Without what is not said: a plan may have very many steps."""
    return {
        key: value
        for key, value in step.items()
        if value is not None and (key, value) not in (("place", TARGET), ("replaces", False))
    }


def digest_of(content: dict[str, Any]) -> str:
    bare = {key: value for key, value in content.items() if key != "digest"}
    text = json_text(bare, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def plan_to_json(plan: Plan) -> dict[str, Any]:
    return _content(plan)


def render_plan(plan: Plan) -> bytes:
    return (json_text(_content(plan), indent=1) + "\n").encode()


def refuse_unaccepted(plan: Plan) -> None:
    """What a plan risks is carried out only if it was accepted by name."""
    open_risks = plan.unaccepted
    if open_risks:
        words = [
            f"{item.sink}: {item.words}." if item.accept else item.words
            for item in plan.consequences
            if item.accept in open_risks or item.sink.endswith(open_risks[0])
        ]
        raise WouldLose(
            f"{plan.verb}: {open_risks[0]} has to be accepted first",
            "\n".join(words),
            f"If that is all right: --accept {' --accept '.join(open_risks)}",
        )
