"""The file sink's own log, taken back with the checkpoint, or led to where the output lies now.

It remembers batch numbers alone: a number that stands in it is skipped, whatever a new
batch of that number holds. So going back to batch K means that nothing above K stands there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from floodmark.changes.carry.checkpoint_files import sidecar
from floodmark.changes.carry.rehome import Moves, moved_sink_log
from floodmark.changes.steps import SINK, Step, delete, write
from floodmark.checkpoint.relative_path import RelativePath
from floodmark.connectors.files.file_log import COMPACT, SINK_LOG, log_id
from floodmark.storage.files import Files

SinkPlace = tuple[str, Files]
"""The file sink's output: where it is, and the way to it."""


@dataclass(frozen=True)
class Trim:
    steps: tuple[Step, ...]
    words: str = ""
    """Why it cannot be trimmed."""
    until: int = -1
    """The newest batch in the log."""


def trim_sink_log(sink: Files, batch: int) -> Trim:
    names = sink.level(SINK_LOG).files
    ids = {name: number for name in names if (number := log_id(name)) is not None}
    beyond = sorted((name for name, at in ids.items() if at > batch), key=lambda name: -ids[name])
    if not ids:
        return Trim((), f"{sink.root} has no {SINK_LOG}: it is no output of the file sink")
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
        if sidecar(name) in there:
            steps.append(delete(sidecar(path), why, SINK))
    return Trim(tuple(steps), until=max(ids.values()))


def rehome_sink_log(sink: Files, moves: Moves) -> Iterator[Step]:
    """Readers and Spark itself follow the absolute paths in it, wherever the folder lies."""
    names = sink.level(SINK_LOG).files
    entries = [f"{SINK_LOG}/{name}" for name in names if log_id(name) is not None]
    for path, data in sink.read_many(map(RelativePath, entries)).items():
        if not isinstance(data, bytes):
            raise data
        moved, count = moved_sink_log(data, moves)
        if not count:
            continue
        if sidecar(path).rpartition("/")[2] in names:
            yield delete(sidecar(path), "the checksum of what is replaced", SINK)
        why = f"{count} output files are where --rehome says"
        yield write(path, moved, why, replaces=True, place=SINK)
