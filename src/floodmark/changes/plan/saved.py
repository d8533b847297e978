"""Saves a plan to a file, and reads files that the user names: a plan, or offsets."""

from __future__ import annotations

from pathlib import Path

from floodmark.changes.plan import Plan, render_plan
from floodmark.changes.plan.parsing import parse_plan
from floodmark.errors import WrongUse
from floodmark.limits import check_size, current
from floodmark.storage.modes import open_private


def save_plan(plan: Plan, path: str) -> None:
    try:
        with open(path, "wb", opener=open_private) as file:
            file.write(render_plan(plan))
    except OSError as error:
        raise WrongUse(
            f"{path}: the plan cannot be saved there ({error.strerror})",
            do="Name a file in a folder that is there and may be written to.",
        ) from None


def read_plan(path: str) -> Plan:
    return parse_plan(bytes_of(path), path)


def bytes_of(path: str) -> bytes:
    """Return the content of a file that the user names: a saved plan, or offsets."""
    try:
        check_size(path, Path(path).stat().st_size, "plan")
        # A device or a pipe has no size, and may never end.
        most = current().of("plan")
        with open(path, "rb") as file:
            data = file.read(most + 1)
        check_size(path, len(data), "plan")
        return data
    except OSError as error:
        raise WrongUse(
            f"{path}: cannot read it ({error.strerror})", do="Check the path of the file."
        ) from None
