"""Saves an outline to a file that the user names, which is new or an older outline.

Any other file stays as it is: an outline can be made again, and that file perhaps cannot.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from floodmark.changes.plan.saved import bytes_of
from floodmark.errors import CannotWrite, MalformedFile, NotEmpty, Refused, UnknownVersion
from floodmark.rules.restarts.outline_file import is_outline, outlined_checkpoint

_ANOTHER = "Name another file."


def save_outline(text: str, path: str, replace: bool = False) -> bool:
    """Save an outline; return whether it was written, as an equal file stays as it is.

    `replace`: also replace the outline of another checkpoint.
    """
    try:
        return _saved(text, path, replace)
    except (OSError, RuntimeError, ValueError) as error:  # also errors of links and of names
        words = getattr(error, "strerror", None) or error
        raise CannotWrite(
            f"{path} cannot be written: {words}",
            do="Name a file in a folder that may be written to.",
        ) from None


def _saved(text: str, path: str, replace: bool) -> bool:
    place = Path(path).expanduser()
    before = outline_there(place)
    if before == text:
        return False
    if before and not replace:
        _require_same_checkpoint(before, text, path)
    place = place.resolve()  # a link stays one
    beside = place.with_name(f".{place.name}.{os.getpid()}")
    place.parent.mkdir(parents=True, exist_ok=True)
    try:
        beside.write_text(text, encoding="utf-8")
        beside.replace(place)
    except OSError:
        with contextlib.suppress(OSError):
            beside.unlink()
        raise
    return True


def outline_there(place: Path) -> str:
    """Return the text of the existing outline, if any; refuse every other file."""
    if not place.exists():
        return ""
    if not place.is_file():
        raise NotEmpty(f"{place} exists, and is not a file", do=_ANOTHER)
    data = bytes_of(str(place))
    if data.strip() and not is_outline(data):
        raise NotEmpty(f"{place} exists, and is not an outline: it stays as it is", do=_ANOTHER)
    try:
        outlined_checkpoint(data)
    except UnknownVersion as error:
        raise Refused(
            f"{place} is an outline of a later version: it stays as it is",
            error.what,
            "Upgrade floodmark, or name another file.",
        ) from None
    except MalformedFile:  # cut off, or with merge marks: writing it again repairs it
        return ""
    return data.decode("utf-8", "replace")


def _require_same_checkpoint(before: str, text: str, path: str) -> None:
    was, now = outlined_checkpoint(before.encode()), outlined_checkpoint(text.encode())
    if _place(was) != _place(now):
        raise NotEmpty(
            f"{path} is the outline of another checkpoint: {was}",
            "`check` would judge that stream's code by this one's state.",
            "Name another file; if the stream has moved: --replace",
        )


def _place(checkpoint: str) -> str:
    return checkpoint.rstrip("/") if "://" in checkpoint else str(Path(checkpoint).resolve())
