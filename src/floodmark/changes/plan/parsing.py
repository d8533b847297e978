"""Reads a plan from JSON that anybody may have written: a saved file, or a journal.

A digest shows that somebody edited a plan, but it is no signature: whoever writes a plan can write
its digest. So every field is checked for its allowed values, and every path of a step becomes a
`RelativePath`. A step for a sink changes only the file sink's log.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from floodmark.changes.plan import (
    FORMAT,
    NEEDED,
    RELEASE,
    Consequence,
    Plan,
    Precondition,
    digest_of,
)
from floodmark.changes.plan.steps import (
    OPERATIONS,
    SINK,
    TARGET,
    CopyFile,
    DeleteFile,
    RestoreFile,
    RewriteState,
    Step,
    TakeSnapshot,
    WriteFile,
)
from floodmark.checkpoint.layout import STATE
from floodmark.checkpoint.relative_path import RelativePath, shown
from floodmark.connectors.files.file_log import SINK_LOG
from floodmark.errors import EditedPlan, MalformedFile, UnsafePath

if TYPE_CHECKING:
    from floodmark.statestore.rewrite.target import StateTarget

_SAVED = "A changing verb saves one with --out PLAN.json."
_VERBS = frozenset(
    {
        *("upgrade", "rewind", "copy", "backup", "restore", "migrate", "repartition", "convert"),
        *("bootstrap", "leave-dstreams", "repair", "compact", "undo", "forget"),
    }
)
_OPERATOR = re.compile(rf"{STATE}/\d{{1,9}}")
_LARGEST = 2**63
_DEEPEST = 100
"""A limit, as walking a deeply nested value would end the process."""


class _Odd(Exception):
    """Says what is wrong with a value that no plan has."""


def parse_plan(data: bytes, origin: str = "plan") -> Plan:
    """Parse a saved plan; refuse one that was edited, or that another release made."""
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
            f"{origin}: floodmark {shown(made_by)} made this plan, but this is {RELEASE}",
            "A step may mean something else in another release.",
            "Plan again with this release, or execute it with that one.",
        )
    if value.get("digest") != _digest(value):
        raise EditedPlan(
            f"{origin}: the plan was changed after it was made",
            "Its digest does not fit its content, so nobody has checked what it would do.",
            "Plan again with the options that you need.",
        )
    try:
        _need(_is_shallow(value), "values are nested deeper than in any plan")
        return _plan(value)
    except UnsafePath as error:
        raise EditedPlan(
            f"{origin}: the plan leads out of its place: {error.what}",
            error.why,
            "Nothing was changed. No command makes such a plan: do not trust its source.",
        ) from None
    except MalformedFile as error:
        raise EditedPlan(
            f"{origin}: not a plan that a command has made",
            f"In it, {shown(error.what)}.",
            f"Nothing was changed. {_SAVED}",
        ) from None
    except (_Odd, LookupError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise EditedPlan(
            f"{origin}: not a plan that a command has made",
            f"In it, {shown(str(error))}."
            if isinstance(error, _Odd)
            else f"A field is missing, or of another type: {shown(str(error))}.",
            f"Nothing was changed. {_SAVED}",
        ) from None


def _is_shallow(value: Any) -> bool:
    level = [value]
    for _ in range(_DEEPEST):
        inside = (one.values() if isinstance(one, dict) else one for one in level)
        level = [item for items in inside for item in items if isinstance(item, (dict, list))]
        if not level:
            return True
    return False


def _digest(value: dict[str, Any]) -> str | None:
    try:
        return digest_of(value)
    except (ValueError, RecursionError):  # half of a surrogate pair, say
        return None


def _plan(value: dict[str, Any]) -> Plan:
    for name in ("verb", "title", "origin", "target", "fingerprint", "standing", "digest"):
        _need(_is_text(value[name]), f"`{name}` is no text")
    _need(value["verb"] in _VERBS, "`verb` names no verb")
    for name in ("origin", "target", "sink"):
        _need(_is_whole_place(value[name]), f"`{name}` is not a whole path or address")
    _need(_is_number(value["block"]), "`block` is no number")
    _need(isinstance(value["options"], dict), "`options` is no object")
    for name in ("accept", NEEDED):
        listed = value["options"].get(name, [])
        _need(
            isinstance(listed, (list, tuple)) and all(map(_is_text, listed)), f"`{name}` is no list"
        )
    _need(
        value["sink"] is None or (isinstance(value["sink"], str) and value["sink"]),
        "`sink` is no place",
    )
    plan = Plan(
        **{
            **value,
            "steps": _each(value["steps"], _step),
            "preconditions": _each(value["preconditions"], lambda item: Precondition(**item)),
            "notes": _each(value["notes"], _text),
            "consequences": _each(value["consequences"], _consequence),
        }
    )
    texts = [text for item in plan.preconditions for text in (item.name, item.words)]
    texts += [text for item in plan.consequences for text in (item.sink, item.words)]
    _need(all(isinstance(text, str) for text in texts), "a condition or a consequence is no text")
    for step in plan.steps:
        _need(
            step.place == TARGET or plan.sink is not None,
            "a step is about a sink, and none is named",
        )
        if isinstance(step, TakeSnapshot):
            _need(
                plan.verb == "backup" and step.path == plan.target, "a snapshot is made elsewhere"
            )
    return plan


def _consequence(value: Any) -> Consequence:
    _need(isinstance(value, dict), "a consequence is no object")
    ranges = {name: tuple(value[name]) for name in ("again", "skips", "lost") if value.get(name)}
    for numbers in ranges.values():
        _need(len(numbers) == 2 and all(map(_is_number, numbers)), "a range is none")
    return Consequence(**{**value, **ranges})


def _step(value: Any) -> Step:
    _need(isinstance(value, dict), "a step is no object")
    do = value.get("do")
    _need(isinstance(do, str) and do in OPERATIONS, f"a step does {shown(do)}")
    kind = OPERATIONS[do]
    given = {name: item for name, item in value.items() if name != "do"}
    odd = sorted(given.keys() - {one.name for one in fields(kind)})
    _need(not odd, f"a step that does `{do}` has {shown(odd[0] if odd else None)}")
    _need(_is_text(given.get("path")) and _is_text(given.get("why")), "a step says no reason")
    place = given.get("place", TARGET)
    _need(place in (TARGET, SINK), "a step is about neither the target nor the sink")
    _need(isinstance(given.get("replaces", False), bool), "`replaces` is neither true nor false")
    for name in ("size", "mode"):
        _need(given.get(name) is None or _is_number(given[name]), f"`{name}` is no number")
    _need((given.get("mode") or 0) <= 0o777, "`mode` is none")
    for name in ("text", "base64", "origin"):
        _need(given.get(name) is None or _is_text(given[name]), "the content of a step is no text")
    if kind is RewriteState:
        given["how"] = _how(given.get("how"), given["path"])
    step = kind(**given)
    _check_content(step)
    if not isinstance(step, TakeSnapshot):
        _check_path(step)
    return step


def _how(value: Any, path: str) -> StateTarget | Mapping[str, Any]:
    _need(isinstance(value, dict), "`how` is no object")
    _need(_OPERATOR.fullmatch(path), f"state is rewritten in {shown(path)}")
    if "parts" not in value:
        return dict(value)  # an earlier floodmark's: it can be taken back
    from floodmark.statestore.rewrite.target_json import target_from_json

    target = target_from_json(value)
    _need(path == f"{STATE}/{target.operator}", "`how` is about another operator")
    return target


def _check_content(step: Step) -> None:
    if isinstance(step, WriteFile):
        _need((step.text is None) != (step.base64 is None), "what is written has no content")
        base64.b64decode(step.base64 or "", validate=True)
    if isinstance(step, (CopyFile, RestoreFile)):
        from floodmark.storage.repository import OBJECTS

        _need(step.origin is not None, "content comes from nowhere")
        origin = RelativePath(step.origin)
        _need(
            isinstance(step, CopyFile) or origin.startswith(f"{OBJECTS}/"),
            "content comes from elsewhere than a repository",
        )


def _check_path(step: Step) -> None:
    path = RelativePath(step.path)
    if step.place == SINK:
        _need(
            isinstance(step, (WriteFile, CopyFile, DeleteFile)),
            "a step does to a sink what none does",
        )
        if not path.startswith(f"{SINK_LOG}/"):
            raise UnsafePath(f"{path} is not in the file sink's log", f"That is {SINK_LOG}.")


def _each(value: Any, make: Callable[[Any], Any]) -> tuple[Any, ...]:
    _need(isinstance(value, list), "a list is missing")
    return tuple(make(item) for item in value)


def _text(value: Any) -> str:
    _need(isinstance(value, str), "a note is no text")
    return str(value)


def _is_text(value: Any) -> bool:
    """Whether a value is text; half of a surrogate pair is not, as no file can hold it."""
    if not isinstance(value, str):
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_whole_place(text: Any) -> bool:
    """Whether a location is absolute; a missing sink is allowed."""
    return text is None or (isinstance(text, str) and (text.startswith("/") or ":/" in text))


def _is_number(value: Any) -> bool:
    return type(value) is int and 0 <= value < _LARGEST


def _need(holds: object, what: str) -> None:
    if not holds:
        raise _Odd(what)
