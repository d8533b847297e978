"""Reads a file of code that the user names: a regular file, no larger than code is."""

from __future__ import annotations

from pathlib import Path

from floodmark.errors import WrongUse
from floodmark.limits import check_size


def code_bytes(path: Path) -> bytes:
    """Return the content; a device or a pipe is refused, because it may never end."""
    size = path.stat().st_size
    if not path.is_file() and not path.is_dir():  # reading a folder says that it is one
        raise WrongUse(
            f"{path} is a device or a pipe, and no file",
            "Code is read more than once, and a device may never end.",
            "Save the code in a file, and name that one.",
        )
    check_size(str(path), size, "code")
    return path.read_bytes()
