"""Executes a backup: writes new content to the repository, then the snapshot that names it."""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass, replace
from datetime import datetime, timezone

from floodmark.changes.carry.needed_state import needed_state
from floodmark.changes.plan import Plan
from floodmark.changes.planners.backup import consistent, refuse_another_query
from floodmark.checkpoint.layout import STATE
from floodmark.checkpoint.model import Checkpoint
from floodmark.checkpoint.relative_path import RelativePath
from floodmark.checkpoint.text import several
from floodmark.errors import CannotRead, EditedPlan, FileGone, StateFileMissing, StoppedMidway
from floodmark.progress import counted
from floodmark.storage import repository as backup
from floodmark.storage.file_copy import mode_of, private
from floodmark.storage.files import Files, WritableFiles
from floodmark.storage.listing.purged import entry_batch, first_kept, is_entry_to
from floodmark.storage.repository import RepositoryWriter, Snapshot, Stored

_TRIES = 5


@dataclass(frozen=True)
class Retention:
    keep_last: int | None = None
    keep_daily: int | None = None


@dataclass(frozen=True)
class BackupResult:
    snapshot: Snapshot
    new_bytes: int
    removed_snapshots: int


def execute_backup(plan: Plan, files: Files, repository: WritableFiles) -> str:
    """Take the snapshot that a plan describes; return the result in words."""
    retention = _retention(plan)
    refuse_another_query(files, plan)
    try:
        done = take_backup(files, plan.origin, repository, retention)
    except (OSError, CannotRead) as error:
        raise StoppedMidway(
            "the backup did not finish",
            str(error),
            "No snapshot was made, and the earlier ones are complete. Repeat it when the storage"
            " answers again and has space.",
        ) from None
    size = several(done.snapshot.bytes, "byte")
    words = f"Snapshot {done.snapshot.id}: {done.new_bytes:,} of {size} new."
    if done.removed_snapshots:
        words += f" Gone: {several(done.removed_snapshots, 'older snapshot')}."
    return words


def _retention(plan: Plan) -> Retention:
    """Return the plan's retention; check it, as a saved plan may be a stranger's."""
    last, daily = plan.options.get("keep_last"), plan.options.get("keep_daily")
    for number in (last, daily):
        if number is not None and (type(number) is not int or number < 1):
            raise EditedPlan(
                "the plan of a backup does not say how many snapshots to keep",
                "No command makes such a plan.",
                "Plan it again: floodmark backup CP REPO --out PLAN.json",
            )
    return Retention(last, daily)


def take_backup(
    files: Files,
    location: str,
    repository: WritableFiles,
    retention: Retention,
    now_ms: int | None = None,
) -> BackupResult:
    now = int(time.time() * 1000) if now_ms is None else now_ms
    repository = private(repository)
    backup.open_repository(repository, create=True)
    mark = uuid.uuid4().hex
    repository.write(RelativePath(f"{backup.RUNNING}/{mark}"), str(now).encode())
    try:
        earlier = [s for s in backup.snapshots(repository) if s.location == location]
        store = RepositoryWriter(repository, earlier[-1].files if earlier else ())
        snapshot = _snapshot(files, location, store, now)
        backup.write_snapshot(repository, snapshot)
        removed = 0
        if retention != Retention():
            mine = [s for s in backup.snapshots(repository) if s.location == location]
            others = {s.id for s in backup.snapshots(repository) if s.location != location}
            keep = backup.retained(mine, retention.keep_last, retention.keep_daily, _day)
            removed = backup.sweep(repository, keep | others, now, mark)
    finally:
        repository.delete([RelativePath(f"{backup.RUNNING}/{mark}")])
    return BackupResult(snapshot, store.written, removed)


def _day(time_ms: int) -> str:
    return datetime.fromtimestamp(time_ms / 1000, timezone.utc).date().isoformat()


def _snapshot(files: Files, location: str, store: RepositoryWriter, now_ms: int) -> Snapshot:
    for _ in range(_TRIES):
        try:
            checkpoint = consistent(files)
            stored = _stored(files, checkpoint, store)
        except StateFileMissing:
            raise  # it is lost, and was not there when the files were listed
        except FileGone:
            continue  # maintenance removed it after the listing: list again
        moment = datetime.fromtimestamp(now_ms / 1000, timezone.utc)
        name = f"{moment:%Y%m%dT%H%M%S}-{uuid.uuid4().hex[:8]}"
        return Snapshot(
            name,
            now_ms,
            location,
            checkpoint.query_id,
            checkpoint.committed_batch,
            stored,
            mode_of(files),
        )
    raise CannotRead(
        f"{files.root}: files were removed faster than they could be read",
        f"{_TRIES} times a file that the snapshot needs was removed after it was listed.",
        "Try again, or when the stream has less to do.",
    )


def _stored(files: Files, checkpoint: Checkpoint, store: RepositoryWriter) -> tuple[Stored, ...]:
    needed: set[str] = set()
    if checkpoint.committed_batch is not None and checkpoint.state_operators:
        for state in needed_state(checkpoint, checkpoint.committed_batch, files.read):
            needed |= {file.path for file in state.files}
            needed |= {table.path for table in state.tables}
    begin = first_kept(checkpoint.offset_ids, checkpoint.commit_ids)
    stored, purged = [], -1
    for file in counted(checkpoint.files, "files"):
        unchanged = store.earlier(file.path, file.size, file.mtime_ms)
        if unchanged is not None:
            stored.append(replace(unchanged, mode=mode_of(files, file.path)))
            continue
        try:
            data = files.read(RelativePath(file.path))
        except FileGone:
            if is_entry_to(file.path, begin - 1):
                purged = max(purged, entry_batch(file.path) or 0)
                continue  # a running query removes its oldest entries
            if file.path in needed or not file.path.startswith(f"{STATE}/"):
                raise
            continue  # an old version that maintenance removed: nothing needs it
        stored.append(store.put(file.path, data, file.mtime_ms, mode_of(files, file.path)))
    # Both logs begin at the same batch: what was read before it was removed goes as well.
    return tuple(one for one in stored if not is_entry_to(one.path, purged))
