"""Finds an earlier change in the journal that the user requests again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

from floodmark.changes import journal
from floodmark.changes.fingerprint import fingerprint
from floodmark.changes.journal import Stage
from floodmark.changes.named_places import same_place
from floodmark.changes.plan import Plan, plan_to_json
from floodmark.changes.plan.steps import WriteFile
from floodmark.checkpoint.layout import METADATA
from floodmark.checkpoint.metadata import parse_metadata
from floodmark.errors import MalformedFile
from floodmark.storage.files import Files


def recorded(target: Files, plan: Plan) -> Plan | None:
    """Return the plan of this same change, if it was begun, or finished and not touched since."""
    for record in reversed(journal.read_records(target)):
        if same_change(record.plan, plan) and _can_repeat(target, record):
            return record.plan
    return None


def repeated(
    target: Files, verb: str, origin: str, location: str, asked: Mapping[str, Any]
) -> Plan | None:
    """Return the journal's plan if the user repeats a command that has changed the checkpoint.

    Somebody else may have written the journal. So its plan must be what this command requests: the
    same verb, options, origin and location, and a sink that the user named. An option that is
    `None` was not given, and the plan may have a value for it; a sink must be named.
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
    """Whether a journal has the plan that this command makes, except for a new query id.

    Ids are random, so the change continues with its first id.
    """
    return _deeds(journaled) == _deeds(plan)


def _deeds(plan: Plan) -> dict[str, Any]:
    value = plan_to_json(plan)
    steps = [{**step, "text": _without_id(step)} for step in value["steps"]]
    kept = ("verb", "origin", "target", "options", "fingerprint", "block", "sink")
    names = [condition.name for condition in plan.preconditions]
    # As JSON data: a journal's plan was JSON, and has lists instead of tuples.
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
