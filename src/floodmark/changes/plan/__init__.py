"""Represents a change as data: what is written, copied and deleted, why, and what must hold.

A planner makes a plan, which is printed, saved, compared and executed by `apply`. The digest shows
that somebody has edited a plan; the fingerprint shows that the checkpoint has moved since. Nothing
in this module touches storage.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any

from floodmark.changes.plan.steps import Step, step_to_json
from floodmark.checkpoint.text import json_text
from floodmark.errors import WouldLose
from floodmark.screen import ShownByFields
from floodmark.wire import to_wire

# The package's own names would import every layer above; only the version is needed here.
RELEASE: str = import_module("floodmark").__version__
FORMAT = 1


@dataclass(frozen=True)
class Precondition:
    """Checked when the plan is made and again when it is carried out."""

    name: str
    """The condition's name."""
    words: str
    """The condition as a sentence."""


UNCHANGED = "origin-unchanged"
SAME_QUERY = "same-query"
SNAPSHOT_THERE = "snapshot-there"
NOT_IN_USE = "not-in-use"
NEEDED = "needs_accepted"
EMPTY = "target-empty"
FOLDER_MODE = "folder_mode"
"""restore: the option that says who could read the snapshot's folder."""


def unchanged_and_idle(location: str, standing: str) -> tuple[Precondition, ...]:
    """Return the conditions: the location stands where the plan found it, and no query runs."""
    return (
        Precondition(UNCHANGED, f"{location} still stands at {standing}"),
        Precondition(NOT_IN_USE, f"no query runs on {location}"),
    )


@dataclass(frozen=True)
class Consequence:
    """The effect of a change on one kind of sink."""

    sink: str
    """The kind of sink."""
    words: str
    """A sentence that says what happens there."""
    loses_or_repeats: bool = False
    """Whether records are lost or written twice."""
    again: tuple[int, int] | None = None
    """The first and the last batch whose records the sink gets a second time."""
    skips: tuple[int, int] | None = None
    """Numbers of coming batches that the sink skips, whatever is in them."""
    fails_at: int | None = None
    """The batch at which the query then fails: the state of skipped batches is never computed."""
    lost: tuple[int, int] | None = None
    """Batches before the stream's position that the sink no longer has."""
    certain: bool = True
    """False where this depends on facts that floodmark cannot know."""
    accept: str | None = None
    """The name by which the user must accept it."""


@dataclass(frozen=True, repr=False)
class Plan(ShownByFields):
    """A change as data: what will be done, what has to hold first, and what it means for sinks."""

    verb: str
    """The command that made the plan."""
    title: str
    """A sentence that says what the plan does."""
    origin: str
    """The absolute location that is read, so that a saved plan works from any folder."""
    target: str
    """The location that is changed."""
    steps: tuple[Step, ...]
    """The steps, in order."""
    preconditions: tuple[Precondition, ...]
    """Conditions that must hold when the plan is made and when it is executed."""
    fingerprint: str
    """A digest of the checkpoint's position: a plan for another position is refused."""
    standing: str
    """The checkpoint's position, in words."""
    block: int
    """The number in offsets/ that keeps Spark from starting during the change."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """The options that the user chose."""
    notes: tuple[str, ...] = ()
    """Further information, in sentences."""
    consequences: tuple[Consequence, ...] = ()
    """The effects of the change on sinks."""
    sink: str | None = None
    """The file sink's output folder, if its log is changed as well."""
    floodmark: str = "plan"
    """Always `plan`, which distinguishes such a file from others."""
    format: int = FORMAT
    """The version of this format."""
    made_by: str = RELEASE
    """The version of floodmark that made the plan."""
    digest: str = ""
    """A digest of the whole plan: an edited plan is refused."""

    @property
    def unaccepted(self) -> tuple[str, ...]:
        """Return the names of risks that nobody has accepted yet."""
        accepted = self.options.get("accept", ())
        return tuple(name for name in self.options.get(NEEDED, ()) if name not in accepted)

    @property
    def id(self) -> str:
        """Names the plan, and the journal of what it did."""
        return self.digest[:16]

    @property
    def about_target(self) -> bool:
        """Whether the fingerprint is the target's: a change in place, or a restore."""
        return self.in_place or self.verb == "restore"

    @property
    def in_place(self) -> bool:
        """Whether an existing checkpoint is changed, instead of a new one being made."""
        return all(condition.name != EMPTY for condition in self.preconditions)


def seal(plan: Plan) -> Plan:
    """Return the plan with its digest."""
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
    """Refuse a plan with risks that were not accepted by name; a saved plan needs them earlier."""
    open_risks = plan.unaccepted
    if open_risks:
        # Each risk in words: nobody should accept a name whose meaning was not printed.
        words = [
            f"{item.sink}: {item.words}." if item.accept else _named(item, open_risks)
            for item in plan.consequences
            if item.accept in open_risks or item.sink.endswith(open_risks)
        ]
        has = "has" if len(open_risks) == 1 else "have"
        refused = WouldLose(
            f"{plan.verb}: {' and '.join(open_risks)} {has} to be accepted first",
            "\n".join(words),
            f"{'Plan it again with' if saved else 'If that is all right:'} "
            f"--accept {' --accept '.join(open_risks)}",
        )
        refused.accept = () if saved else tuple(open_risks)
        raise refused


def _named(item: Consequence, open_risks: tuple[str, ...]) -> str:
    """Return what a risk means, with its name before it where there are several."""
    if len(open_risks) == 1:
        return item.words
    return f"{item.sink.removeprefix('--accept ')}: {item.words}"
