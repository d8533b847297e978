"""Finds a change in the journal that was begun or finished before, and is asked for again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

from floodmark.changes import journal
from floodmark.changes.fingerprint import fingerprint
from floodmark.changes.journal import Stage
from floodmark.changes.named_places import same_place
from floodmark.changes.plan import Plan, plan_to_json
from floodmark.changes.steps import WriteFile
from floodmark.checkpoint.layout import METADATA
from floodmark.checkpoint.metadata import parse_metadata
from floodmark.errors import MalformedFile
from floodmark.storage.files import Files


def recorded(target: Files, plan: Plan) -> Plan | None:
    """This very change, begun earlier, or finished and untouched since."""
    for record in reversed(journal.read_records(target)):
        if same_change(record.plan, plan) and _can_repeat(target, record):
            return record.plan
    return None


def repeated(
    target: Files, verb: str, origin: str, location: str, asked: Mapping[str, Any]
) -> Plan | None:
    """The same command, given again: its journal knows the plan, which the change has overtaken.

    The journal may be a stranger's. So its plan has to be what this command asks for: the same
    verb, options, origin and place, and a sink that was named. `None` of an option stands for an
    option that was not given, and of which the plan may say more; a sink is named or not.
    """
    said = {key: value for key, value in asked.items() if value is not None}
    sink = asked.get("sink")
    for record in reversed(journal.read_records(target)):
        plan = record.plan
        if (
            plan.verb == verb
            and all(plan.options.get(key) == value for key, value in said.items())
            and same_place(plan.target, location)
            and same_place(plan.origin, origin)
            and (plan.sink is None or plan.sink == sink)
            and _can_repeat(target, record)
        ):
            return plan
    return None


def _can_repeat(target: Files, record: journal.Record) -> bool:
    if record.stage is Stage.BEGUN:
        return True
    return record.stage is Stage.FINISHED and fingerprint(target).digest == record.after


def same_change(journaled: Plan, plan: Plan) -> bool:
    """True where a journal has the plan that this command makes, but for a new query id.

    Ids are drawn: the one that was begun with is gone on with.
    """
    return _deeds(journaled) == _deeds(plan)


def _deeds(plan: Plan) -> dict[str, Any]:
    value = plan_to_json(plan)
    steps = [{**step, "text": _without_id(step)} for step in value["steps"]]
    kept = ("verb", "origin", "target", "options", "fingerprint", "block", "sink")
    names = [condition.name for condition in plan.preconditions]
    # As JSON has it: a journal has been through it, and has lists in place of tuples.
    return cast(
        "dict[str, Any]",
        json.loads(json.dumps({**{key: value[key] for key in kept}, "s": steps, "p": names})),
    )


def _without_id(step: dict[str, Any]) -> str | None:
    text: str | None = step.get("text")
    if step["do"] != WriteFile.do or step["path"] != METADATA or text is None:
        return text
    try:
        return text.replace(parse_metadata(text.encode()).id, "")
    except MalformedFile:
        return text
