"""Repairs files from a backup.

Spark never changes a file that it has finished. So a copy in a backup is as good as the file
itself, if both belong to the same query and its logs agree.
"""

from __future__ import annotations

from collections.abc import Iterable

from floodmark.changes.repair.working_copy import WorkingCopy
from floodmark.checkpoint.layout import COMMITS, METADATA, OFFSETS, STATE, main_file
from floodmark.checkpoint.relative_path import RelativePath
from floodmark.connectors.files.file_log import COMPACT
from floodmark.errors import FloodmarkError
from floodmark.rules.mend import Mend
from floodmark.storage.files import Files
from floodmark.storage.repository import Snapshot, Stored, fetch

_LOGS = (f"{OFFSETS}/", f"{COMMITS}/")
_STATE = f"{STATE}/"
_MOST = 100_000


class Backup:
    """The snapshots of a repository that belong to this same stream, newest first."""

    def __init__(self, repository: Files, snapshots: Iterable[Snapshot]) -> None:
        self.repository = repository
        self.snapshots = tuple(snapshots)

    def restore(self, work: WorkingCopy) -> bool:
        wanted = _wanted(work)
        if not wanted:
            return False
        lost_all = bool(work.found(Mend.LOST_STATE))
        done = False
        for snapshot in self.snapshots:
            stored = {file.path: file for file in snapshot.files}
            mine = [path for path in wanted if path in stored and path not in work.restored]
            if lost_all and not any(path.startswith(_STATE) for path in work.restored):
                mine += [path for path in stored if path.startswith(_STATE)]
            if mine and self._is_of(work, snapshot, stored):
                for path in mine:
                    data = fetch(self.repository, stored[path])
                    if not work.has(path) or data != work.files.read(RelativePath(path)):
                        work.restore(stored[path], data, f"as of snapshot {snapshot.id}")
                        done = True
        return done

    def _is_of(self, work: WorkingCopy, snapshot: Snapshot, stored: dict[str, Stored]) -> bool:
        """Whether a snapshot has the same query, and the same entries that both can read."""
        query_id = work.checkpoint.query_id
        if METADATA not in work.evidence.faults and query_id not in (None, snapshot.query_id):
            return False
        sound = [
            path
            for path in stored
            if path.startswith(_LOGS)
            and work.has(path)
            and path not in work.evidence.faults
            and path not in work.evidence.disagreeing
        ]
        here = work.files.read_many(map(RelativePath, sound))
        try:
            return all(here[path] == fetch(self.repository, stored[path]) for path in sound)
        except FloodmarkError:
            return False


def _wanted(work: WorkingCopy) -> list[str]:
    """Return every file with a finding, and the files that a state needs but does not have."""
    evidence = work.evidence
    paths = {item.path for item in work.findings}
    paths |= evidence.faults.keys() | evidence.unusable | evidence.disagreeing
    paths |= {f"{need.folder}/{name}" for need in evidence.needs for name in need.missing}
    gaps = work.found(Mend.OFFSET_ENTRY)
    paths |= {f"{OFFSETS}/{item.path.split('/')[1]}" for item in gaps}
    paths |= {main_file(item.path) or item.path for item in work.found(Mend.LONE_SIDE_FILE)}
    checkpoint = work.checkpoint
    latest, committed = checkpoint.latest_batch, checkpoint.committed_batch
    if latest is not None and committed is not None:
        # A file's name may be any number: only this many before the newest are wanted.
        first = max(latest + 1, committed - _MOST)
        paths |= {f"{OFFSETS}/{batch}" for batch in range(first, committed + 1)}
        first = max(committed + 1, latest - _MOST)
        paths |= {f"{COMMITS}/{batch}" for batch in range(first, latest)}
    if work.found(Mend.SEEN_FILES):
        for source in evidence.seen_files:
            paths |= _entries(work, source)
    return sorted(paths)


def _entries(work: WorkingCopy, source: str) -> set[str]:
    newest = work.evidence.seen_files[source]
    names = range(max(0, newest - 100), newest + 100)
    return {f"sources/{source}/{n}{end}" for n in names for end in ("", COMPACT)} - set(
        work.evidence.sizes
    )
