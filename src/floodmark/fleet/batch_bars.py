"""Shows the batches of a checkpoint as bars from planned to committed, with marks between."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from floodmark.checkpoint.layout import COMMITS, OFFSETS
from floodmark.checkpoint.model import Checkpoint
from floodmark.checkpoint.timeline import Status, timeline
from floodmark.fleet.progress_lines import ProgressLine

FROM_PROGRESS = "progress"
FROM_FILES = "files"
# The files of a copied checkpoint have the times of copying, so they show no duration.
_LONGEST_MS = 7 * 86_400_000
_CLOCKS_DIFFER_MS = 5_000


@dataclass(frozen=True)
class BatchBar:
    batch: int
    """The number of the batch."""
    status: Status
    """`committed`, `in-flight`, `uncommitted-gap` (a later one is committed) or `offset-purged`
    (only its commit is left)."""
    planned_ms: int | None
    """The batch's own time, which Spark sets when it plans the batch."""
    committed_ms: int | None
    """The time when the commit was written, according to the storage."""
    duration_ms: int | None
    """Spark's own triggerExecution in a progress line; else the time from planned to committed."""
    source: str | None
    """The origin of the duration: `progress` or `files`."""
    watermark_ms: int | None
    """The watermark with which the batch began."""
    rows: int | None = None
    """The number of rows that it read, if a progress line has it."""


@dataclass(frozen=True)
class Mark:
    """An event before a batch."""

    batch: int
    kind: str
    """`restart`, `code`, `spark`, `conf` or `floodmark`."""
    words: str
    at_ms: int | None = None


def batch_bars(
    checkpoint: Checkpoint, progress: Mapping[int, ProgressLine], last: int = 300
) -> tuple[BatchBar, ...]:
    times = {file.path: file.mtime_ms for file in checkpoint.files}
    copied = was_copied(checkpoint)
    return tuple(
        _bar(batch.batch, batch.status, batch.time_ms, batch.watermark_ms, times, progress, copied)
        for batch in timeline(checkpoint, last)
    )


def _bar(
    batch: int,
    status: Status,
    planned_ms: int | None,
    watermark_ms: int | None,
    times: Mapping[str, int | None],
    progress: Mapping[int, ProgressLine],
    copied: bool,
) -> BatchBar:
    committed = None if copied else times.get(f"{COMMITS}/{batch}")
    planned = planned_ms if planned_ms or copied else times.get(f"{OFFSETS}/{batch}")
    line = progress.get(batch)
    duration, source = None, None
    if line is not None:
        duration, source = line.duration_ms, FROM_PROGRESS
        if committed is None and planned is not None and status is Status.COMMITTED:
            committed = planned + duration
    elif committed is not None and planned is not None:
        took = committed - planned
        if -_CLOCKS_DIFFER_MS <= took <= _LONGEST_MS:
            duration, source = max(took, 0), FROM_FILES
    rows = None if line is None else line.rows
    return BatchBar(batch, status, planned, committed, duration, source, watermark_ms, rows)


def was_copied(checkpoint: Checkpoint) -> bool:
    """Whether the files' times are a copy's: they span much less than the batches' own."""
    return copied_times(
        [
            (batch, entry.metadata.batch_timestamp_ms)
            for batch, entry in checkpoint.offsets.items()
            if entry.metadata
        ],
        {file.path: file.mtime_ms for file in checkpoint.files},
    )


def copied_times(planned: Sequence[tuple[int, int]], times: Mapping[str, int | None]) -> bool:
    both = [
        (at_ms, found)
        for batch, at_ms in planned
        if (found := times.get(f"{OFFSETS}/{batch}")) is not None
    ]
    if len(both) < 2:
        return False
    by_batch = max(at for at, _ in both) - min(at for at, _ in both)
    by_file = max(found for _, found in both) - min(found for _, found in both)
    return by_batch > 2 * _CLOCKS_DIFFER_MS and by_file < by_batch / 2


def marks(
    checkpoint: Checkpoint,
    notes: Sequence[Mapping[str, Any]],
    changes: Iterable[Mark],
    progress: Sequence[ProgressLine],
) -> tuple[Mark, ...]:
    """Return the marks; `notes` of starts are oldest first, `changes` are floodmark's."""
    found = [*_starts(notes), *_confs(checkpoint), *changes]
    noted = {mark.batch for mark in found if mark.kind == "restart"}
    found += [mark for mark in _runs(progress) if mark.batch not in noted]
    return tuple(sorted(found, key=lambda mark: (mark.batch, mark.kind)))


def _starts(notes: Sequence[Mapping[str, Any]]) -> list[Mark]:
    found = []
    before: Mapping[str, Any] | None = None
    for note in notes:
        batch, at = note.get("next_batch"), note.get("started_ms")
        if type(batch) is int and batch >= 0:
            at_ms = at if type(at) is int and at > 0 else None
            spark = str(note.get("spark_version", ""))[:40]
            found.append(Mark(batch, "restart", f"started with Spark {spark or '?'}", at_ms))
            if before is not None:
                found += _changed(before, note, batch, at_ms)
            before = note
    return found


def _changed(
    before: Mapping[str, Any], note: Mapping[str, Any], batch: int, at_ms: int | None
) -> list[Mark]:
    found = []
    old, new = (str(one.get("spark_version", ""))[:40] for one in (before, note))
    if old != new:
        found.append(Mark(batch, "spark", f"Spark {old} → {new}", at_ms))
    one, other = before.get("code_fingerprint"), note.get("code_fingerprint")
    if isinstance(one, str) and isinstance(other, str) and one != other:
        found.append(Mark(batch, "code", "the code changed", at_ms))
    return found


def _runs(progress: Sequence[ProgressLine]) -> list[Mark]:
    return [
        Mark(after.batch, "restart", "started again", after.time_ms)
        for before, after in pairwise(progress)
        if before.run_id != after.run_id
    ]


def _confs(checkpoint: Checkpoint) -> list[Mark]:
    """Mark the entries that pin other settings than the one before: other Spark, other conf."""
    found = []
    for before, after in pairwise(sorted(checkpoint.offsets)):
        one, other = checkpoint.offsets[before].metadata, checkpoint.offsets[after].metadata
        if one is None or other is None or one.conf == other.conf or not one.conf:
            continue
        came, went = sorted(set(other.conf) - set(one.conf)), set(one.conf) - set(other.conf)
        at_ms = other.batch_timestamp_ms or None
        if came or went:
            words = f"another Spark: it pins {len(came)} more and {len(went)} fewer settings"
            found.append(Mark(after, "spark", words, at_ms))
        else:
            changed = sorted(key for key in one.conf if one.conf[key] != other.conf[key])
            found.append(Mark(after, "conf", f"{changed[0]} changed"[:200], at_ms))
    return found
