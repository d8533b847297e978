"""Follows the logs of a checkpoint, and reads only what is new since the last look.

On a local disk a look at an unchanged checkpoint reads two folders' times. On an object store it
is one listing, or two while a batch is in flight. New entries are found by their names. A DStreams
folder has no logs: the names of its `checkpoint-<time>` files say when it was saved.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from floodmark.checkpoint.commits import parse_commit
from floodmark.checkpoint.dstreams.folder import graph_files
from floodmark.checkpoint.layout import COMMITS, OFFSETS, FileInfo, batch_ids
from floodmark.checkpoint.offsets import OffsetEntry, parse_offsets
from floodmark.checkpoint.relative_path import RelativePath
from floodmark.errors import FileGone, FloodmarkError, NotThere
from floodmark.storage.files import Files
from floodmark.storage.local import LocalFiles

# A folder's time may stay the same if it changes twice within one tick of the clock.
_SETTLED_NS = 2_000_000_000
_KEPT = 120
_MOST_STEPS = 50


@dataclass(frozen=True)
class Glimpse:
    """The newest entries, and the times of the last commits."""

    latest: int | None = None
    committed: int | None = None
    commit_times: tuple[tuple[int, int], ...] = ()
    """(batch, time when its commit was written), oldest first."""
    plan_times: tuple[tuple[int, int], ...] = ()
    """(batch, time when it was planned), oldest first."""
    planned_ms: int | None = None
    watermark_ms: int | None = None
    entry: OffsetEntry | None = None
    """The newest entry; None where there is none or it cannot be read."""
    stamp: tuple[int | None, ...] | None = None
    """The state of the folders; None: read them again."""
    dstreams: bool = False
    """True for DStreams: its `commit_times` are the times of batches that were saved."""

    @property
    def newest(self) -> int | None:
        """Return the newest batch: its number, or its time for DStreams."""
        if self.dstreams:
            return self.commit_times[-1][0]
        return self.latest

    @property
    def in_flight(self) -> int | None:
        if self.latest is None or (self.committed is not None and self.committed >= self.latest):
            return None
        return self.latest


def glimpse(files: Files, before: Glimpse | None = None) -> Glimpse:
    """Return the newest entries; the same object where nothing changed."""
    if isinstance(files, LocalFiles):
        return _local(files, before)
    return _listed(files, before, None)


def _local(files: LocalFiles, before: Glimpse | None) -> Glimpse:
    stamp = files.folder_stamps(OFFSETS, COMMITS, "")
    if stamp[-1] is None:
        raise NotThere(f"{files.root}: the folder is gone", do="It was removed or moved.")
    has_logs = stamp[0] is not None or stamp[1] is not None
    stamp = stamp[:2] if has_logs else stamp
    if before is not None and before.stamp == stamp:
        return before
    settled = time.time_ns() - max((one for one in stamp if one), default=0) > _SETTLED_NS
    keep = stamp if settled else None
    if not has_logs:
        return _dstreams(files, before, keep)
    if before is not None and before.latest is not None:
        found = _stepped(files, before)
        if found is not before:
            return replace(found, stamp=keep)
    return _listed(files, before, keep)


def _stepped(files: LocalFiles, before: Glimpse) -> Glimpse:
    """Read the entries after the known ones, by their names."""
    latest, committed = before.latest, before.committed
    entry: OffsetEntry | None = None
    planned = list(before.plan_times)
    for batch in range((latest or 0) + 1, (latest or 0) + _MOST_STEPS):
        try:
            entry = _parsed(files.read(RelativePath(f"{OFFSETS}/{batch}")))
        except FileGone:
            break
        except FloodmarkError:
            return before
        latest = batch
        if entry is not None and entry.metadata is not None:
            planned.append((batch, entry.metadata.batch_timestamp_ms))
    times = list(before.commit_times)
    for batch in range(-1 if committed is None else committed, (latest or 0)):
        info = files.file_info(RelativePath(f"{COMMITS}/{batch + 1}"))
        if info is None or info.mtime_ms is None:
            break
        committed = batch + 1
        times.append((committed, info.mtime_ms))
    if (latest, committed) == (before.latest, before.committed):
        return before
    entry = entry if latest != before.latest else before.entry
    found = _glimpse(latest, committed, times, planned, entry)
    return _with_commit(files, found)


def _listed(files: Files, before: Glimpse | None, stamp: tuple[int | None, ...] | None) -> Glimpse:
    offsets = files.list(OFFSETS).files
    planned = batch_ids(offsets, OFFSETS)
    latest = planned[-1] if planned else None
    is_same = before is not None and latest is not None and before.latest == latest
    if is_same and before is not None and before.in_flight is None:
        return before if before.stamp == stamp else replace(before, stamp=stamp)
    commits = files.list(COMMITS).files
    done = batch_ids(commits, COMMITS)
    committed = done[-1] if done else None
    if is_same and before is not None and before.committed == committed:
        return before if before.stamp == stamp else replace(before, stamp=stamp)
    if not planned and not done and isinstance(files, LocalFiles) is False:
        found = _dstreams(files, before, stamp)
        if found.dstreams:
            return found
        files.list(most=1)  # says so where the place itself is gone
    entry = before.entry if is_same and before is not None else _read_entry(files, latest)
    found = _glimpse(latest, committed, _times(commits, COMMITS), _times(offsets, OFFSETS), entry)
    return replace(_with_commit(files, found), stamp=stamp)


def _dstreams(
    files: Files, before: Glimpse | None, stamp: tuple[int | None, ...] | None
) -> Glimpse:
    names = files.level().files
    saved = graph_files(FileInfo(name, 0, None) for name in names)
    times = sorted({one.time_ms for one in saved})[-_KEPT:]
    found = Glimpse(
        commit_times=tuple((time_ms, time_ms) for time_ms in times),
        stamp=stamp,
        dstreams=bool(times),
    )
    return before if before == found else found


def _times(files: tuple[FileInfo, ...], log: str) -> list[tuple[int, int]]:
    """Return (batch, time when its entry was written) of the newest entries of a log."""
    times = {file.path: file.mtime_ms for file in files}
    return [
        (batch, at)
        for batch in batch_ids(files, log)[-_KEPT:]
        if (at := times.get(f"{log}/{batch}")) is not None
    ]


def _read_entry(files: Files, batch: int | None) -> OffsetEntry | None:
    if batch is None:
        return None
    try:
        return _parsed(files.read(RelativePath(f"{OFFSETS}/{batch}")))
    except FloodmarkError:
        return None


def _parsed(data: bytes) -> OffsetEntry | None:
    try:
        return parse_offsets(data)
    except FloodmarkError:
        return None  # the doctor reports what is wrong with it


def _glimpse(
    latest: int | None,
    committed: int | None,
    times: list[tuple[int, int]],
    planned: list[tuple[int, int]],
    entry: OffsetEntry | None,
) -> Glimpse:
    metadata = entry.metadata if entry else None
    return Glimpse(
        latest,
        committed,
        tuple(times[-_KEPT:]),
        tuple(planned[-_KEPT:]),
        metadata.batch_timestamp_ms if metadata else None,
        metadata.batch_watermark_ms if metadata else None,
        entry,
    )


def _with_commit(files: Files, found: Glimpse) -> Glimpse:
    """Add the watermark that the newest commit has for the next batch."""
    if found.committed is None or found.in_flight is not None:
        return found
    if not found.watermark_ms:
        return found  # a stream without a watermark: its commits tell nothing more
    try:
        commit = parse_commit(files.read(RelativePath(f"{COMMITS}/{found.committed}")))
    except FloodmarkError:
        return found
    return replace(
        found, watermark_ms=max(commit.next_batch_watermark_ms or 0, found.watermark_ms or 0)
    )
