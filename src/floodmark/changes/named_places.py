"""Compares what the user named in a command with the locations in a plan or a journal.

A stranger may have written a saved plan or a journal. Floodmark checks what they say about their
own location there; it reads or changes another location only if the command names it.
"""

from __future__ import annotations

import os
import shlex

from floodmark.addresses import has_secret
from floodmark.changes.plan import Plan
from floodmark.changes.plan.steps import SINK
from floodmark.checkpoint.relative_path import shown
from floodmark.connectors.files.file_log import SINK_LOG
from floodmark.errors import CannotRead, Refused, WrongUse
from floodmark.storage.files import local_path, place_name


def absolute(location: str) -> str:
    """Return an absolute location, as a plan can be executed from any folder."""
    if not str(location):  # a shell's variable that is not set would mean the current folder
        raise WrongUse("the path is empty", do="Give a folder or a URL such as s3://bucket/folder.")
    path = local_path(str(location))
    if path is None and has_secret(str(location)):
        raise WrongUse(
            f"{location}: the address holds a password or a signature",
            "A plan and its journal contain addresses, and must not contain secrets.",
            "Leave it out of the address, and give it as --storage KEY=VALUE, or in the "
            "environment of the storage's driver.",
        )
    return str(location).rstrip("/") if path is None else os.path.abspath(path)  # noqa: PTH100


def refuse_overlap(path: str, new: str) -> None:
    first, second = place_name(path), place_name(new)
    if first == second:
        raise WrongUse(
            f"{path} and {new} are the same place",
            "The new checkpoint would overwrite the one it is made from.",
            "Name another location.",
        )
    for inner, outer in ((first, second), (second, first)):
        if inner.startswith(outer + "/"):
            raise WrongUse(
                f"{path} and {new}: one is inside the other",
                "A checkpoint inside a checkpoint would look like a part of it.",
                "Name a location beside it.",
            )


def refuse_inside(out: str, *places: str) -> None:
    """Refuse a file for a result inside of a checkpoint: Spark may take it for an entry."""
    try:
        named = place_name(out)
    except CannotRead:
        return  # no file can have this name, and writing says so
    for place in places:
        if place and f"{named}/".startswith(f"{place_name(place)}/"):
            raise WrongUse(
                f"{out} lies inside of {place}",
                "Spark reads every file of a checkpoint's logs, and fails at one of another kind.",
                "Name a file elsewhere.",
            )


def same_place(one: str, other: str) -> bool:
    return place_name(one) == place_name(other)


def not_named(sink: str) -> str:
    """Return a plan's note: the checkpoint's notes name a sink that the user has not named."""
    return (
        f"The notes of the last start name a file sink: {shown(sink)}. Its log, {SINK_LOG}, is "
        f"not touched: if it is this stream's, say --sink {shlex.quote(shown(sink))}."
    )


def require_named_sink(plan: Plan, sink: str | None, command: str) -> None:
    """Refuse to change a sink, which is outside the checkpoint, unless the command names it."""
    if plan.sink is None or not any(step.place == SINK for step in plan.steps):
        return
    if sink is not None and same_place(plan.sink, sink):
        return
    raise _unnamed(
        f"this `{plan.verb}` also changes the file sink's log in",
        plan.sink,
        "A folder outside the checkpoint is changed only if the command names it: a stranger "
        "may have written the plan or the journal.",
        f"If it is this stream's output: {command}",
        "--sink",
        sink,
    )


def require_named_origin(plan: Plan, location: str, origin: str | None, command: str) -> None:
    """Refuse to read from another location than the journal's, unless the command names it."""
    if not same_place(plan.target, location):
        raise Refused(
            f"the journal in {location} belongs to a change of {shown(plan.target)}",
            "The checkpoint was moved or copied while the change was half done, or a stranger "
            "wrote the journal.",
            f"Take it back: floodmark undo {shlex.quote(location)} --execute",
        )
    if same_place(plan.origin, location) or (origin and same_place(plan.origin, origin)):
        return
    raise _unnamed(
        f"this `{plan.verb}` reads from",
        plan.origin,
        "A location outside the checkpoint is read only if the command names it: a stranger "
        "may have written the journal.",
        f"If it should read from there: {command}",
        "--from",
        origin,
    )


def _unnamed(what: str, place: str, why: str, do: str, option: str, named: str | None) -> Refused:
    """The command names no place, or another one, for this option."""
    other = f", but {option} names {named}" if named is not None else ""
    return Refused(
        f"{what} {shown(place)}{other}", why, f"{do} {option} {shlex.quote(shown(place))}"
    )
