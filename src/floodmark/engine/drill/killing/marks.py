"""Shows how far a driver is: its process writes files, and waits at a chosen point.

started            the query runs
begun-7, done-7    its foreachBatch function was called for batch 7, and came back
held               the driver waits at the point where it is to be killed
"""

from __future__ import annotations

import json
import os
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from floodmark.drills.points import Point
from floodmark.engine.drill.run_spec import HELD, MARKS, STARTED

HOLD = "FLOODMARK_DRILL_HOLD"
SLOW = "FLOODMARK_DRILL_SLOW_MS"
_HELD_SECONDS = 300.0


@dataclass(frozen=True)
class Hold:
    """Names the point of a batch at which to wait, and the writes before it, during the sink."""

    point: Point
    batch: int
    writes: int = 0

    def text(self) -> str:
        return f"{self.point.value}:{self.batch}:{self.writes}"

    @staticmethod
    def of(text: str | None) -> Hold | None:
        if not text:
            return None
        point, batch, writes = text.split(":")
        return Hold(Point(point), int(batch), int(writes))


class Marks:
    def __init__(self, folder: Path) -> None:
        self._folder = folder / MARKS
        self._folder.mkdir(exist_ok=True)
        self._hold = Hold.of(os.environ.get(HOLD))
        self._lock = threading.Lock()
        self._batch: int | None = None
        self._writes = 0
        self._began = 0.0

    @property
    def batch(self) -> int | None:
        """Return the batch whose function runs now."""
        return self._batch

    def started(self) -> None:
        (self._folder / STARTED).touch()

    def begin(self, batch: int) -> None:
        self._wait_at(Point.AFTER_OFFSET, batch)
        self._batch, self._writes, self._began = batch, 0, time.monotonic()
        (self._folder / f"begun-{batch}").touch()

    def wrote(self) -> None:
        """Count one more finished write of the running function."""
        with self._lock:
            self._writes += 1
            writes = self._writes
        if self._batch is not None and self._hold is not None and self._hold.writes == writes:
            self._wait_at(Point.DURING_SINK, self._batch)

    def done(self, batch: int) -> None:
        told = {"writes": self._writes, "seconds": time.monotonic() - self._began}
        (self._folder / f"done-{batch}").write_text(json.dumps(told))
        self._batch = None
        self._wait_at(Point.AFTER_SINK, batch)

    def _wait_at(self, point: Point, batch: int) -> None:
        if self._hold is None or (self._hold.point, self._hold.batch) != (point, batch):
            return
        (self._folder / HELD).touch()
        time.sleep(_HELD_SECONDS)


class FunctionLog:
    """Reads from the marks what a foreachBatch function has done for a batch."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / MARKS

    def has_batch(self, query_id: str, batch: int) -> bool:
        return (self.folder / f"done-{batch}").exists()

    def half_written(self, since: float) -> bool:
        return any(
            path.stat().st_mtime >= since
            and not (self.folder / path.name.replace("begun", "done")).exists()
            for path in self.folder.glob("begun-*")
        )

    def told(self, batch: int) -> tuple[int, float]:
        """Return how often the function wrote for a batch, and its duration in seconds."""
        try:
            told = json.loads((self.folder / f"done-{batch}").read_text())
        except FileNotFoundError:
            return 0, 0.0
        return int(told["writes"]), float(told["seconds"])
