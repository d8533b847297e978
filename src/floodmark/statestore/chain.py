"""Which files make up one version of one partition's store. Names only: nothing is read
but a changelog's lineage, for with unique ids a folder alone cannot tell.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from floodmark.checkpoint.layout import StateFile
from floodmark.errors import BatchPurged, FileGone

_SNAPSHOT = {"hdfs": "snapshot", "rocksdb": "zip"}
_CHANGE = {"hdfs": "delta", "rocksdb": "changelog"}
Lineage = Callable[[StateFile], tuple[tuple[int, str], ...]]


class StateFileMissing(FileGone):
    """A file that the state needs is not in its folder."""


class StatePurged(BatchPurged):
    """Spark has removed the state of that batch, or never wrote it."""


@dataclass(frozen=True)
class StateChain:
    """A snapshot, or none at version 0, and the changes after it, oldest first."""

    snapshot: StateFile | None
    changes: tuple[StateFile, ...]


def chain_of(
    files: Iterable[StateFile],
    provider: str,
    version: int,
    unique_id: str | None,
    folder: str,
    lineage: Lineage,
) -> StateChain:
    if version == 0:
        return StateChain(None, ())
    everything = tuple(files)
    if not everything:
        # Spark removes versions, and never the newest one: this it has not done.
        raise StateFileMissing(
            f"{folder} holds no state file at all",
            f"Batch {version - 1} left one in every partition, so the folder was lost or emptied.",
            "Restore it from a backup, or go on without any state: `floodmark upgrade CP NEW "
            "--without-state`.",
        )
    mine = [file for file in everything if file.provider == provider and file.version <= version]
    if unique_id is not None:
        return _by_lineage(mine, version, unique_id, folder, lineage)
    snapshots = {f.version: f for f in mine if f.kind == _SNAPSHOT[provider] and not f.unique_id}
    changes = {f.version: f for f in mine if f.kind == _CHANGE[provider] and not f.unique_id}
    base = max(snapshots, default=0)
    missing = next((at for at in range(base + 1, version + 1) if at not in changes), None)
    if missing is not None:
        kind = _CHANGE[provider] if changes or not snapshots else _SNAPSHOT[provider]
        raise _missing(folder, version, missing, kind, set(changes) | set(snapshots))
    return StateChain(
        snapshots.get(base), tuple(changes[at] for at in range(base + 1, version + 1))
    )


def _missing(
    folder: str, version: int, first: int, kind: str, there: set[int]
) -> BatchPurged | FileGone:
    older = [at for at in there if at < first]
    if not older and first < version:
        # Nothing before it is left: retention took the beginning, as it does.
        return StatePurged(
            f"{folder}: the state of batch {version - 1} cannot be put together any more",
            f"It needs {first}.{kind} and what follows; Spark has removed the oldest files"
            " (spark.sql.streaming.minBatchesToRetain).",
            "Choose a later batch.",
        )
    return StateFileMissing(
        f"{folder}/{first}.{kind} is missing",
        f"Batch {version - 1} needs it: a version is the last snapshot and every change since.",
        "Restore the file from a backup, or choose a batch whose state does not need it.",
    )


def _by_lineage(
    files: list[StateFile], version: int, unique_id: str, folder: str, lineage: Lineage
) -> StateChain:
    named = {(f.version, f.unique_id, f.kind): f for f in files}
    snapshot = named.get((version, unique_id, "zip"))
    if snapshot is not None:
        return StateChain(snapshot, ())
    newest = named.get((version, unique_id, "changelog"))
    if newest is None:
        raise StateFileMissing(
            f"{folder}/{version}_{unique_id}.changelog is missing",
            f"commits/{version - 1} says that the state of batch {version - 1} is in it.",
            "Restore the file from a backup, or choose another batch.",
        )
    steps = sorted(lineage(newest))
    based = [step for step in steps if (*step, "zip") in named]
    base = max(based, default=None)
    after = [step for step in steps if base is None or step[0] > base[0]]
    if base is None and (not steps or steps[0][0] != 1) and version != 1:
        raise StateFileMissing(
            f"{folder}: no snapshot of batch {version - 1}'s lineage is there",
            f"{newest.path} continues one that is gone.",
            "Restore the folder from a backup, or choose another batch.",
        )
    changes = []
    for step in after:
        found = named.get((*step, "changelog"))
        if found is None:
            raise StateFileMissing(
                f"{folder}/{step[0]}_{step[1]}.changelog is missing",
                f"{newest.path} continues it.",
                "Restore the file from a backup, or choose another batch.",
            )
        changes.append(found)
    return StateChain(named[(*base, "zip")] if base else None, (*changes, newest))
