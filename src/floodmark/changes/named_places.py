"""What the user has named in a command, against what a plan or a journal says of other places.

A saved plan and a journal may be a stranger's. What they say of the place that they are for is
checked there; a place elsewhere is read or changed only where the same command names it.
"""

from __future__ import annotations

import json
import shlex
from typing import Any, cast

from floodmark.changes.plan import SINK, WRITE, Plan, plan_to_json
from floodmark.checkpoint.layout import METADATA
from floodmark.checkpoint.query import parse_metadata
from floodmark.checkpoint.relative_path import shown
from floodmark.connectors.files.file_log import SINK_LOG
from floodmark.errors import MalformedFile, Refused
from floodmark.storage.files import place_name


def same_place(one: str, other: str) -> bool:
    return place_name(one) == place_name(other)


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
    if step["do"] != WRITE or step["path"] != METADATA or text is None:
        return text
    try:
        return text.replace(parse_metadata(text.encode()).id, "")
    except MalformedFile:
        return text


def not_named(sink: str) -> str:
    """For a plan: the notes in the checkpoint name a sink, and the user has not."""
    return (
        f"The notes of the last start name a file sink: {shown(sink)}. Its log, {SINK_LOG}, is "
        f"not touched: if it is this stream's, say --sink {shlex.quote(shown(sink))}."
    )


def require_named_sink(plan: Plan, sink: str | None, command: str) -> None:
    """A sink lies outside of the checkpoint: it is changed only where it was named."""
    if plan.sink is None or not any(step.place == SINK for step in plan.steps):
        return
    if sink is not None and same_place(plan.sink, sink):
        return
    raise Refused(
        f"this `{plan.verb}` changes the file sink's log in {shown(plan.sink)}, too"
        + (f", and --sink names {sink}" if sink is not None else ""),
        "A folder outside of the checkpoint is changed only where the command names it: what a "
        "plan or a journal says, a stranger may have written.",
        f"If that is this stream's output: {command} --sink {shlex.quote(shown(plan.sink))}",
    )


def require_named_origin(plan: Plan, location: str, origin: str | None, command: str) -> None:
    """What a journal in `location` has to read from elsewhere is read where it was named."""
    if not same_place(plan.target, location):
        raise Refused(
            f"the journal in {location} is of a change of {shown(plan.target)}",
            "The checkpoint was moved or copied while the change was half done, or a stranger "
            "wrote the journal.",
            f"Take it back: floodmark undo {location} --execute",
        )
    if same_place(plan.origin, location) or (origin and same_place(plan.origin, origin)):
        return
    raise Refused(
        f"this `{plan.verb}` reads from {shown(plan.origin)}"
        + (f", and --from names {origin}" if origin is not None else ""),
        "A place outside of the checkpoint is read only where the command names it: a stranger "
        "may have written the journal.",
        f"If that is where it is to read from: {command} --from {shlex.quote(shown(plan.origin))}",
    )
