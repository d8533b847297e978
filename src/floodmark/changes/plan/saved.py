"""Saves a plan to a file, and reads files that the user names: a plan, or offsets."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

from floodmark.changes.named_places import refuse_inside
from floodmark.changes.plan import Plan, render_plan
from floodmark.changes.plan.parsing import parse_plan
from floodmark.errors import WrongUse
from floodmark.limits import MIB, check_size
from floodmark.storage.modes import open_private

_PIECE = MIB


def save_plan(plan: Plan, path: str) -> None:
    refuse_inside(path, plan.origin, plan.target)
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


def _bounded(path: str, file: BinaryIO) -> bytes:
    """Read a pipe or a device, which has no size, and may never end."""
    data = bytearray()
    while piece := file.read(_PIECE):
        data += piece
        check_size(path, len(data), "plan")
    return bytes(data)


def bytes_of(path: str) -> bytes:
    """Return the content of a file that the user names: a saved plan, or offsets."""
    try:
        check_size(path, Path(path).stat().st_size, "plan")
        if Path(path).is_file():
            return Path(path).read_bytes()
        with open(path, "rb") as file:
            return _bounded(path, file)
    except OSError as error:
        raise WrongUse(
            f"{path}: cannot read it ({error.strerror})", do="Check the path of the file."
        ) from None
