"""Takes the file sink's own log back with the checkpoint, or changes its paths after a move.

The log contains only batch numbers: the sink skips a number that is in it, whatever a new batch
with that number contains. So after going back to batch K, no number above K may be there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from floodmark.changes.carry.rehome import Moves, moved_sink_log
from floodmark.changes.plan.steps import SINK, Step, delete, write
from floodmark.checkpoint.layout import side_file
from floodmark.checkpoint.relative_path import RelativePath
from floodmark.connectors.files.file_log import COMPACT, SINK_LOG, log_id
from floodmark.storage.files import Files

SinkPlace = tuple[str, Files]
"""The file sink's output: its location, and its files."""


@dataclass(frozen=True)
class Trim:
    steps: tuple[Step, ...]
    words: str = ""
    """The reason why the log cannot be trimmed."""
    until: int = -1
    """The newest batch in the log."""


def trim_sink_log(sink: Files, batch: int) -> Trim:
    names = sink.level(SINK_LOG).files
    ids = {name: number for name in names if (number := log_id(name)) is not None}
    beyond = sorted((name for name, at in ids.items() if at > batch), key=lambda name: -ids[name])
    if not ids:
        return Trim((), f"{sink.root} has no {SINK_LOG}, so it is no output of the file sink")
    if not beyond:
        return Trim((), until=max(ids.values()))
    kept = {name: at for name, at in ids.items() if at <= batch}
    base = max((at for name, at in kept.items() if name.endswith(COMPACT)), default=-1)
    plain = {at for name, at in kept.items() if not name.endswith(COMPACT)}
    lost = next((at for at in range(base + 1, batch + 1) if at not in plain), None)
    if lost is not None:
        return Trim(
            (),
            f"the sink's log has compacted batch {lost} into one after batch {batch}, so it "
            "cannot be taken back to it",
            max(ids.values()),
        )
    why = f"the file sink would skip batches up to {ids[beyond[0]]}"
    there = set(names)
    steps = []
    for name in beyond:
        path = f"{SINK_LOG}/{name}"
        steps.append(delete(path, why, SINK))
        if side_file(name) in there:
            steps.append(delete(side_file(path), why, SINK))
    return Trim(tuple(steps), until=max(ids.values()))


def rehome_sink_log(sink: Files, moves: Moves) -> Iterator[Step]:
    """Yield entries with moved paths, as readers and Spark follow the absolute paths in the log."""
    names = sink.level(SINK_LOG).files
    entries = [f"{SINK_LOG}/{name}" for name in names if log_id(name) is not None]
    for path, data in sink.read_many(map(RelativePath, entries)).items():
        if not isinstance(data, bytes):
            raise data
        moved, count = moved_sink_log(data, moves)
        if not count:
            continue
        if side_file(path).rpartition("/")[2] in names:
            yield delete(side_file(path), "the checksum of what is replaced", SINK)
        why = f"{count} output files are where --rehome says"
        yield write(path, moved, why, replaces=True, place=SINK)
