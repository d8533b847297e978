"""Detects whether a DStreams application without a note still writes to its folder.

A plain script holds no lease. Its newest file has the name of the batch that it has planned. But
an application that runs missed batches writes old names, so the folder is watched for a while.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

from floodmark.checkpoint.dstreams.folder import graph_files
from floodmark.checkpoint.model import Checkpoint
from floodmark.engine.start.lease import in_use, live_holder
from floodmark.errors import InUse
from floodmark.storage.files import Files

_QUIET_MS = 10_000
_WATCHED_MS = (2_000, 15_000)
_POLL_SECONDS = 0.25


def require_stopped(files: Files, checkpoint: Checkpoint) -> None:
    """Refuse while the application runs: its state would change after the copy."""
    holder = live_holder(files)
    if holder is not None:
        raise in_use(checkpoint.path, holder)
    require_quiet(files, checkpoint)


def require_quiet(
    files: Files, checkpoint: Checkpoint, pause: Callable[[float], Any] = time.sleep
) -> None:
    """Refuse where files came a moment ago, or come while the folder is watched."""
    found = checkpoint.dstreams
    assert found is not None
    batch_ms = found.batch_ms or 0
    quiet = max(3 * batch_ms, _QUIET_MS)
    now = int(time.time() * 1000)
    newest = max((file.time_ms for file in found.graph_files), default=0)
    age = now - newest  # below 0 where the clock of the application's machine is ahead
    if abs(age) < quiet:
        left = math.ceil((quiet - age) / 1000)
        raise _running(
            checkpoint.path,
            f"its newest file is {max(age, 0) / 1000:.0f} s old",
            f"repeat the command {quiet / 1000:g} s after its last file: in {left} s if it has "
            f"stopped.",
        )
    graphs = {file.path for file in found.graph_files}
    written = [file.mtime_ms for file in checkpoint.files if file.path in graphs]
    # A missing time, or one after this machine's present, does not prove that it is quiet.
    if all(time_ms is not None and now - time_ms >= quiet for time_ms in written):
        return
    before = _graphs(files)
    least, most = _WATCHED_MS
    until = time.monotonic() + min(max(2 * batch_ms, least), most) / 1000
    while time.monotonic() < until:
        pause(_POLL_SECONDS)
        if _graphs(files) != before:
            raise _running(checkpoint.path, "its files have changed while it was watched")


def _graphs(files: Files) -> set[tuple[str, int, int | None]]:
    listed = files.list().files
    graphs = {file.path for file in graph_files(listed)}
    return {(file.path, file.size, file.mtime_ms) for file in listed if file.path in graphs}


def _running(path: str, sign: str, then: str = "repeat the command after a moment.") -> InUse:
    return InUse(
        f"{path}: {sign}: the application seems to run",
        "The input that it reads from now on would be read twice.",
        f"Stop it (SIGTERM, so that it finishes its batches), and {then}",
    )
