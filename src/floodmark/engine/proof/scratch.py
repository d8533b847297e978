"""Makes a folder for forks and kept rows, and removes it afterwards."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from floodmark.errors import CannotWrite, NotEmpty, WrongUse


@contextlib.contextmanager
def scratch_place(given: str | None, verb: str, checkpoint: str | None = None) -> Iterator[Path]:
    """Yield the empty folder that the user names, or else a temporary folder of the system."""
    if given is None:
        with tempfile.TemporaryDirectory(
            prefix=f"floodmark-{verb}-", ignore_cleanup_errors=True
        ) as made:
            yield Path(made).resolve()
        return
    place = empty_folder(given, "--scratch", checkpoint)
    existed = place.exists()
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CannotWrite(f"--scratch {given} cannot be made: {error.strerror}") from None
    try:
        yield place
    finally:
        for one in place.iterdir():
            shutil.rmtree(one, ignore_errors=True)
        if not existed:
            with contextlib.suppress(OSError):
                place.rmdir()


def empty_folder(given: str, option: str, checkpoint: str | None = None) -> Path:
    """Return a folder on this machine that is empty or does not exist yet."""
    if "://" in given and not given.startswith("file://"):
        raise WrongUse(
            f"{option} {given} is not a folder of this machine",
            do="Name a local folder.",
        )
    place = Path(given.removeprefix("file://")).expanduser().absolute()
    if checkpoint is not None:
        require_outside(place, option, checkpoint, "the checkpoint")
    if place.is_symlink() or (place.exists() and not place.is_dir()):
        raise NotEmpty(f"{option} {given} is not a folder", do="Name a folder that is empty.")
    if place.is_dir() and any(place.iterdir()):
        raise NotEmpty(
            f"{option} {given} is not empty",
            "Its files would be mixed with those that are written there.",
            "Name a folder that is empty, or that does not exist yet.",
        )
    return place.resolve()


def require_outside(place: Path, option: str, real: str, what: str) -> None:
    """Refuse a scratch folder inside a location that must not change."""
    if "://" not in real.removeprefix("file://") and place.resolve().is_relative_to(
        Path(real.removeprefix("file://").removeprefix("file:")).resolve()
    ):
        raise WrongUse(
            f"{option} {place} is inside {what}, {real}",
            "Floodmark writes nothing there.",
            "Name a folder outside it.",
        )
