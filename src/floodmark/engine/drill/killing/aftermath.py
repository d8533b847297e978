"""What a kill has really hit, judged from what it left behind and from nothing else."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from floodmark.drills.points import Point
from floodmark.engine.drill.killing.sink_logs import BatchRecord, names
from floodmark.engine.drill.killing.traps import STATE_FILE, batches, partition_folders


@dataclass(frozen=True)
class Aftermath:
    point: Point
    planned: int | None
    """The highest batch in offsets/."""
    committed: int | None
    state_written: int
    """Partitions that had written the in-flight batch's state in this run."""
    half_written: bool

    def hit(self, point: Point) -> bool:
        """A task writes its state and its rows: half a state and half a batch come together."""
        return point is self.point or (point is Point.DURING_SINK and self.half_written)

    @property
    def in_flight(self) -> int | None:
        return None if self.planned == self.committed else self.planned


def judge(checkpoint: Path, sink: BatchRecord, partitions: int, since: float) -> Aftermath:
    """`since` is when the killed driver began: older left-overs are an earlier kill's."""
    planned = max(batches(checkpoint / "offsets"), default=None)
    committed = max(batches(checkpoint / "commits"), default=None)
    if planned is None:
        return Aftermath(Point.STARTING, None, None, 0, False)
    if planned == committed:
        return Aftermath(Point.AFTER_COMMIT, planned, committed, 0, False)
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
        # All the state is there and the sink was not begun: the state's write is what ended.
        point = Point.DURING_STATE
    else:
        point = Point.AFTER_OFFSET
    return Aftermath(point, planned, committed, state, half)


def _partitions_written(checkpoint: Path, version: int, since: float) -> int:
    """Temporary files count: a store that was being written was being written."""
    return sum(
        any(
            _of_version(path.name, version) and path.stat().st_mtime >= since
            for path in _files(folder)
        )
        for folder in partition_folders(checkpoint)
    )


def _files(partition: Path) -> Iterator[Path]:
    """Those of a partition, and of its stores where it has several (a join's)."""
    for name in names(partition):
        path = partition / name
        if path.is_dir():
            yield from (path / inner for inner in names(path))
        else:
            yield path


def _of_version(name: str, version: int) -> bool:
    match = STATE_FILE.match(name.removeprefix("."))
    return match is not None and int(match[1]) == version and not name.endswith(".crc")
