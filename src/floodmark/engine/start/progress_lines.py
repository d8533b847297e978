"""Progress lines of a query that `floodmark.start` has started: its caller does other things."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from floodmark.checkpoint.layout import NOTES
from floodmark.engine.run.progress import ProgressFile, ProgressReader
from floodmark.storage.local import LocalFiles

_POLL_SECONDS = 1.0


def keep_progress(name: str, query: Any, location: str, warn: Callable[[str], None]) -> None:
    """One line a batch in the checkpoint, until the query ends; on a local disk alone.

    Spark keeps the last hundred reports, so that a look a second misses none but of the
    shortest batches.
    """
    if not location.startswith("file:"):
        return
    place = LocalFiles(location, "/" + location[len("file:") :].lstrip("/"))
    lines = ProgressFile(Path(NOTES, "progress.jsonl"), warn, place)
    reader = ProgressReader(name, query)

    def watch() -> None:
        with contextlib.suppress(Exception):  # the JVM may end at any time
            active = True
            while active:
                time.sleep(_POLL_SECONDS)
                active = bool(query.isActive)  # before the reports: the last ones are read, too
                for batch in reader.new():
                    lines.add(batch)
        lines.close()

    threading.Thread(target=watch, name=f"floodmark-progress-{name}", daemon=True).start()
