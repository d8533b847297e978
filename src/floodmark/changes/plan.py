"""A change as data: what will be written, copied and deleted, why, and what must hold first.

A plan is made by a planner, printed, saved, compared, and carried out by `apply`. Its
digest tells a plan that was edited by hand; its fingerprint tells a checkpoint that has
moved since. Nothing in here touches storage.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any

from floodmark.errors import EditedPlan, MalformedFile
from floodmark.wire import json_text, to_wire

# The package's own names lead to every layer above; its version is all that is wanted.
RELEASE: str = import_module("floodmark").__version__
FORMAT = 1
WRITE, COPY, DELETE, RESTORE = "write", "copy", "delete", "restore"
REWRITE = "rewrite-state"
TARGET, SINK = "target", "sink"
_SAVED = "A changing verb saves one with --out PLAN.json."


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
    how: Mapping[str, Any] | None = None
    """rewrite-state: what its rewriter needs to know. All below `path` is its work."""

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


def rewrite(path: str, why: str, how: Mapping[str, Any]) -> Step:
    """An operator's state, or one store of it, made anew; `how` is plain JSON data."""
    return Step(REWRITE, path, why, how=how)


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
    return replace(plan, digest=_digest(_content(plan)))


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


def _digest(content: dict[str, Any]) -> str:
    bare = {key: value for key, value in content.items() if key != "digest"}
    text = json_text(bare, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def plan_to_json(plan: Plan) -> dict[str, Any]:
    return _content(plan)


def render_plan(plan: Plan) -> bytes:
    return (json_text(_content(plan), indent=1) + "\n").encode()


def parse_plan(data: bytes, origin: str = "plan") -> Plan:
    """A saved plan; refuses one that was edited, or that another release made."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise MalformedFile(f"{origin}: not a plan", f"It is not JSON: {error}", _SAVED) from None
    return plan_from_json(value, origin)


def plan_from_json(value: Any, origin: str = "plan") -> Plan:
    if not isinstance(value, dict) or value.get("floodmark") != "plan":
        raise MalformedFile(
            f"{origin}: not a plan",
            'A plan says "floodmark": "plan".',
            _SAVED,
        )
    made_by = value.get("made_by")
    if made_by != RELEASE or value.get("format") != FORMAT:
        raise EditedPlan(
            f"{origin}: floodmark {made_by} made this plan, and this is {RELEASE}",
            "Releases may differ in what a step means.",
            "Plan again with this release, or carry it out with that one.",
        )
    if value.get("digest") != _digest(value):
        raise EditedPlan(
            f"{origin}: the plan was changed after it was made",
            "Its digest does not fit its content, so what it would do was never checked.",
            "Plan again, with the options that give what you want.",
        )
    try:
        return _plan(value)
    except (KeyError, TypeError) as error:
        raise MalformedFile(
            f"{origin}: not a plan", f"A field is missing: {error}", _SAVED
        ) from None


def _plan(value: dict[str, Any]) -> Plan:
    return Plan(
        **{
            **value,
            "steps": tuple(Step(**step) for step in value["steps"]),
            "preconditions": tuple(Precondition(**item) for item in value["preconditions"]),
            "notes": tuple(value["notes"]),
            "consequences": tuple(_consequence(item) for item in value["consequences"]),
        }
    )


def _consequence(item: dict[str, Any]) -> Consequence:
    ranges = {key: tuple(item[key]) for key in ("again", "skips", "lost") if item.get(key)}
    return Consequence(**{**item, **ranges})
