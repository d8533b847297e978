"""Judges which point a kill has hit, only from the files that it left behind."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from floodmark.checkpoint.layout import CHECKSUM
from floodmark.drills.points import Point
from floodmark.engine.drill.killing.logged_batches import BatchRecord, names
from floodmark.engine.drill.killing.traps import STATE_FILE, batches, partition_folders


@dataclass(frozen=True)
class Aftermath:
    point: Point
    planned: int | None
    """The highest batch in offsets/."""
    committed: int | None
    half_written: bool

    def hit(self, point: Point) -> bool:
        """Whether this point was hit; a task writes state and rows, so both may be half done."""
        return point is self.point or (point is Point.DURING_SINK and self.half_written)

    @property
    def in_flight(self) -> int | None:
        return None if self.planned == self.committed else self.planned


def judge(checkpoint: Path, sink: BatchRecord, partitions: int, since: float) -> Aftermath:
    """Judge a kill; `since` is the start of the killed driver, as older remains are not its own."""
    planned = max(batches(checkpoint / "offsets"), default=None)
    committed = max(batches(checkpoint / "commits"), default=None)
    if planned is None:
        return Aftermath(Point.STARTING, None, None, False)
    if planned == committed:
        return Aftermath(Point.AFTER_COMMIT, planned, committed, False)
    query_id = json.loads((checkpoint / "metadata").read_text())["id"]
    state = _partitions_written(checkpoint, planned + 1, since)
    has_it = sink.has_batch(query_id, planned)
    half = not has_it and sink.half_written(since)
    if has_it:
        point = Point.AFTER_SINK
    elif 0 < state < partitions:
        point = Point.DURING_STATE
    elif half:
        point = Point.DURING_SINK
    elif state:
        # All the state is there and the sink has not begun: the kill came after the state's write.
        point = Point.DURING_STATE
    else:
        point = Point.AFTER_OFFSET
    return Aftermath(point, planned, committed, half)


def _partitions_written(checkpoint: Path, version: int, since: float) -> int:
    """Count the partitions with this version; a temporary file counts as being written."""
    return sum(
        any(
            _of_version(path.name, version) and path.stat().st_mtime >= since
            for path in _files(folder)
        )
        for folder in partition_folders(checkpoint)
    )


def _files(partition: Path) -> Iterator[Path]:
    """Yield the files of a partition and of its stores; a join has several stores."""
    for name in names(partition):
        path = partition / name
        if path.is_dir():
            yield from (path / inner for inner in names(path))
        else:
            yield path


def _of_version(name: str, version: int) -> bool:
    match = STATE_FILE.match(name.removeprefix("."))
    return match is not None and int(match[1]) == version and not name.endswith(CHECKSUM)
