"""Reads completely what a change needs and what it has made, for `--read-data`.

Without it, the state is only checked to be complete: every file of the chain is there, RocksDB's
snapshots open, and the SSTs that they name have their sizes. What floodmark itself writes is
always read back; its copies are compared by size.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from floodmark.changes.carry.needed_state import needed_state
from floodmark.changes.carry.origin import Origin
from floodmark.changes.plan import Plan
from floodmark.changes.plan.steps import CopyFile, RestoreFile
from floodmark.checkpoint.conf_keys import ROW_CHECKSUMS
from floodmark.checkpoint.layout import StateFile
from floodmark.checkpoint.relative_path import RelativePath
from floodmark.checkpoint.state_chain import StoreChain
from floodmark.errors import FileGone, FloodmarkError, MalformedFile, StoppedMidway
from floodmark.progress import counted
from floodmark.statestore.manifests import StoredManifests
from floodmark.storage.files import Files


def read_state(origin: Origin, batch: int | None) -> tuple[str, ...]:
    """Decode the state after the batch; return a note for the plan."""
    count = require_readable_state(origin, batch)
    return (f"The state after batch {batch} was read: {count} files, all sound.",) if count else ()


def require_readable_state(origin: Origin, batch: int | None) -> int:
    """Decode the state after the batch; return the number of files."""
    if batch is None or not origin.checkpoint.state_operators:
        return 0
    count = 0
    for store in needed_state(origin.checkpoint, batch, origin.read):
        for path in _read(origin, store):
            count += bool(path)
    return count


def _read(origin: Origin, store: StoreChain) -> Iterator[str]:
    for file in store.files:
        try:
            _decode(origin, store, file)
        except FileGone:
            raise
        except FloodmarkError as error:
            raise MalformedFile(
                f"{file.path} is damaged: {error.what}",
                error.why,
                "Restore the file from a backup, or choose another batch.",
            ) from None
        yield file.path
    yield from (table.path for table in store.tables)


def _decode(origin: Origin, store: StoreChain, file: StateFile) -> None:
    from floodmark.state.files.hdfs import file_records
    from floodmark.state.files.rocksdb import parse_changelog
    from floodmark.statestore.rocksdb_files import opened

    checked = origin.checkpoint.conf.get(ROW_CHECKSUMS) == "true"
    if file.kind == "zip":
        snapshot = StoredManifests(origin.read).snapshot(file.path)
        with opened(origin.files, store.folder, snapshot, b",") as database:
            for _ in database.records():
                pass
    elif file.kind == "changelog":
        parse_changelog(origin.read(file.path), checked)
    else:
        for _ in file_records("", origin.read(file.path), file.kind == "delta", checked):
            pass


def compare_contents(plan: Plan, origin: Files, target: Files) -> int:
    """Compare copied and restored files by their SHA-256; return the number of files."""
    steps = {step.path: step for step in plan.steps}
    count = 0
    for step in counted(steps.values(), "copies compared"):
        if not isinstance(step, (CopyFile, RestoreFile)):
            continue
        if _sha256(target.read(RelativePath(step.path))) != _wanted(step, origin):
            raise StoppedMidway(
                f"{step.path} does not hold what it was copied from",
                "It has the right size but other content: the storage, or the way to it, has "
                "changed the bytes.",
                "Take it back with `floodmark undo`, and copy again.",
            )
        count += 1
    return count


def _wanted(step: CopyFile | RestoreFile, origin: Files) -> str:
    if isinstance(step, RestoreFile):
        return step.origin.rsplit("/", 1)[-1]  # a repository names content by its SHA-256
    return _sha256(origin.read(RelativePath(step.origin)))


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
