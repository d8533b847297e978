"""A change as data: what will be written, copied and deleted, why, and what must hold first.

A planner makes a plan; it is printed, saved, compared, and carried out by `apply`. Its
digest tells a plan that was edited by hand; its fingerprint tells a checkpoint that has
moved since. Nothing in here touches storage.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any

from floodmark.changes.steps import Step, step_to_json
from floodmark.checkpoint.text import json_text
from floodmark.errors import WouldLose
from floodmark.screen import fields_html, fields_text
from floodmark.wire import to_wire

# The package's own names lead to every layer above; its version is all that is wanted.
RELEASE: str = import_module("floodmark").__version__
FORMAT = 1


@dataclass(frozen=True)
class Precondition:
    """Checked when the plan is made and again when it is carried out."""

    name: str
    """Its name."""
    words: str
    """The same in a sentence."""


UNCHANGED = "origin-unchanged"
SAME_QUERY = "same-query"
SNAPSHOT_THERE = "snapshot-there"
NOT_IN_USE = "not-in-use"
NEEDED = "needs_accepted"
EMPTY = "target-empty"
FOLDER_MODE = "folder_mode"
"""restore: the option that says who could read the folder of the snapshot."""


def unchanged_and_idle(location: str, standing: str) -> tuple[Precondition, ...]:
    """The place stands where the plan found it, in words, and no query runs on it."""
    return (
        Precondition(UNCHANGED, f"{location} still stands at {standing}"),
        Precondition(NOT_IN_USE, f"no query runs on {location}"),
    )


@dataclass(frozen=True)
class Consequence:
    """What the change means for one kind of sink."""

    sink: str
    """The kind of sink."""
    words: str
    """What happens there, in a sentence."""
    loses_or_repeats: bool = False
    """Records are lost or written twice."""
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
    """The command that made it."""
    title: str
    """What the plan does, in a sentence."""
    origin: str
    """The place that is read. A saved plan is carried out from any folder: it is absolute."""
    target: str
    """The place that is changed."""
    steps: tuple[Step, ...]
    """What is done, in order."""
    preconditions: tuple[Precondition, ...]
    """What must hold when the plan is made and when it is carried out."""
    fingerprint: str
    """A digest of the checkpoint's position: a plan for another position is refused."""
    standing: str
    """What the fingerprint stands for, in words."""
    block: int
    """The number in offsets/ that keeps Spark from starting while the change is under way."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """What the user chose."""
    notes: tuple[str, ...] = ()
    """What else to know, in sentences."""
    consequences: tuple[Consequence, ...] = ()
    """What the change means for sinks."""
    sink: str | None = None
    """The file sink's output folder, where its log is changed as well."""
    floodmark: str = "plan"
    """Always `plan`: it tells such a file from others."""
    format: int = FORMAT
    """The version of this format."""
    made_by: str = RELEASE
    """The version of floodmark that made it."""
    digest: str = ""
    """A digest of the whole plan: one that was edited is refused."""

    __repr__ = fields_text
    _repr_html_ = fields_html

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
    value: dict[str, Any] = to_wire(replace(plan, steps=()))
    value["steps"] = [step_to_json(step) for step in plan.steps]
    return value


def digest_of(content: dict[str, Any]) -> str:
    bare = {key: value for key, value in content.items() if key != "digest"}
    text = json_text(bare, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def plan_to_json(plan: Plan) -> dict[str, Any]:
    return _content(plan)


def render_plan(plan: Plan) -> bytes:
    return (json_text(_content(plan), indent=1) + "\n").encode()


def refuse_unaccepted(plan: Plan, *, saved: bool = False) -> None:
    """What a plan risks is carried out only if it was accepted by name: a saved one, when made."""
    open_risks = plan.unaccepted
    if open_risks:
        words = [
            f"{item.sink}: {item.words}." if item.accept else item.words
            for item in plan.consequences
            if item.accept in open_risks or item.sink.endswith(open_risks[0])
        ]
        refused = WouldLose(
            f"{plan.verb}: {open_risks[0]} has to be accepted first",
            "\n".join(words),
            f"{'Plan it again with' if saved else 'If that is all right:'} "
            f"--accept {' --accept '.join(open_risks)}",
        )
        refused.accept = () if saved else tuple(open_risks)
        raise refused
