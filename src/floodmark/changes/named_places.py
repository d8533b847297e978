"""What the user has named in a command, against what a plan or a journal says of other places.

A saved plan and a journal may be a stranger's. What they say of the place that they are for is
checked there; a place elsewhere is read or changed only where the same command names it.
"""

from __future__ import annotations

import os
import shlex

from floodmark.addresses import has_secret
from floodmark.changes.plan import Plan
from floodmark.changes.steps import SINK
from floodmark.checkpoint.relative_path import shown
from floodmark.connectors.files.file_log import SINK_LOG
from floodmark.errors import Refused, WrongUse
from floodmark.storage.files import local_path, place_name


def absolute(location: str) -> str:
    """A plan is carried out from any folder."""
    path = local_path(str(location))
    if path is None and has_secret(str(location)):
        raise WrongUse(
            f"{location}: the address holds a password or a signature",
            "A plan and its journal keep addresses, and secrets must not lie about in them.",
            "Leave it out of the address, and give it as --storage KEY=VALUE, or by the "
            "environment of the storage's driver.",
        )
    return str(location).rstrip("/") if path is None else os.path.abspath(path)  # noqa: PTH100


def refuse_overlap(path: str, new: str) -> None:
    first, second = place_name(path), place_name(new)
    if first == second:
        raise WrongUse(
            f"{path} and {new} are the same place",
            "What is made would lie on what it is made from.",
            "Name another place.",
        )
    for inner, outer in ((first, second), (second, first)):
        if inner.startswith(outer + "/"):
            raise WrongUse(
                f"{path} and {new}: one lies inside the other",
                "A checkpoint inside a checkpoint would be taken for a part of it.",
                "Name a place beside it.",
            )


def same_place(one: str, other: str) -> bool:
    return place_name(one) == place_name(other)


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
            f"Take it back: floodmark undo {shlex.quote(location)} --execute",
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
