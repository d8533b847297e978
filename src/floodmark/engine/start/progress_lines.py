"""Writes progress lines of a query that `floodmark.start` started, in the background."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from floodmark.checkpoint.layout import NOTES, PROGRESS
from floodmark.engine.run.progress import ProgressFile, ProgressReader
from floodmark.storage.local import LocalFiles

_POLL_SECONDS = 1.0


def keep_progress(name: str, query: Any, location: str, warn: Callable[[str], None]) -> None:
    """Write one line for each batch, until the query ends; only on a local disk.

    Spark keeps the last hundred reports, so reading them every second misses only reports of very
    short batches.
    """
    if not location.startswith("file:"):
        return
    place = LocalFiles(location, "/" + location[len("file:") :].lstrip("/"))
    lines = ProgressFile(Path(NOTES, PROGRESS), warn, place)
    reader = ProgressReader(name, query)

    def watch() -> None:
        with contextlib.suppress(Exception):  # the JVM may end at any time
            active = True
            while active:
                time.sleep(_POLL_SECONDS)
                active = bool(query.isActive)  # read before the reports, so that none is missed
                for batch in reader.new():
                    lines.add(batch)
        lines.close()

    threading.Thread(target=watch, name=f"floodmark-progress-{name}", daemon=True).start()
