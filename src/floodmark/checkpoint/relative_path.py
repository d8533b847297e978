"""RelativePath: a path below a place, which cannot lead out of it.

Paths come from files that anybody may have written: plans, journals, lists of snapshots, notes,
logs. Each becomes a `RelativePath` before storage sees it. Pure: opens nothing.
"""

from __future__ import annotations

import re

from floodmark.errors import UnsafePath

# No empty part, no `.` or `..`, no backslash, no control character and no half of a surrogate
# pair, which stands for bytes that are not UTF-8.
_NAME = r"(?!\.{1,2}(?:/|\Z))[^/\\\x00-\x1f\x7f-\x9f\ud800-\udfff]+"
_PATH = re.compile(rf"(?![A-Za-z]:){_NAME}(?:/{_NAME})*")
_ONE_NAME = re.compile(_NAME)
ODD_NAME = "its name holds a control character, a backslash or bytes that are not text"


class RelativePath(str):
    """A path with `/` between its parts. The constructor raises `UnsafePath` for anything else."""

    __slots__ = ()

    def __new__(cls, text: str) -> RelativePath:
        if type(text) is cls:
            return text
        if not isinstance(text, str) or _PATH.fullmatch(text) is None:
            raise UnsafePath(
                f"{shown(text)} is not a path below a folder",
                _fault(text),
                "Nothing was read or changed there. If you did not write that name yourself, do "
                "not trust the file that contains it.",
            )
        return super().__new__(cls, text)


def folder_path(text: str) -> str:
    """Return a path below a place; an empty text means the place itself."""
    return RelativePath(text) if text else ""


def is_path(text: str) -> bool:
    return _PATH.fullmatch(text) is not None


def is_name(text: str) -> bool:
    """Whether a name can be a part of a `RelativePath`."""
    return _ONE_NAME.fullmatch(text) is not None


def shown(text: object) -> str:
    """Return a name in a form that is safe to print."""
    return text if isinstance(text, str) and text and text.isprintable() else ascii(text)


def _fault(text: object) -> str:
    if not isinstance(text, str) or not text:
        return "The path is empty, or not a text."
    if text.startswith("/") or re.match("[A-Za-z]:", text):
        return "The path begins at the root of a disk."
    parts = text.split("/")
    if ".." in parts:
        return "The path leads out of its folder, by `..`."
    if "" in parts or "." in parts:
        return "A part of the path is empty, or `.`."
    return "The path holds a backslash, a control character or bytes that are not text."
