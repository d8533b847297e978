"""A small disk of its own for a test, where tests may mount one."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def can_mount(place: Path) -> bool:
    try:
        with mounted(place, kilobytes=1024):
            return True
    except (OSError, subprocess.CalledProcessError):
        return False


@contextmanager
def mounted(place: Path, kilobytes: int) -> Iterator[Path]:
    place.mkdir(exist_ok=True)
    size = f"size={kilobytes}k"
    command = ["mount", "-t", "tmpfs", "-o", size, "tmpfs", str(place)]
    subprocess.run(command, check=True, capture_output=True)
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


@contextmanager
def filled_up(disk: Path, room: int) -> Iterator[None]:
    """So many kilobytes are left on a disk."""
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file:
        with contextlib.suppress(OSError):
            while True:
                file.write(b"\0" * 4096)
        file.truncate(max(file.tell() - room * 1024, 0))
    try:
        yield
    finally:
        filler.unlink()
