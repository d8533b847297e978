"""Plans `restore`: a checkpoint as a snapshot of a backup repository has it."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

from floodmark.changes.carry.checkpoint_files import belongs
from floodmark.changes.carry.origin import fresh_identity
from floodmark.changes.carry.rehome import (
    is_operator_metadata,
    moved_operator_metadata,
    moved_schema_log,
)
from floodmark.changes.carry.since_snapshot import RestoreOptions, Since
from floodmark.changes.fingerprint import fingerprint
from floodmark.changes.plan import (
    EMPTY,
    FOLDER_MODE,
    NEEDED,
    SNAPSHOT_THERE,
    Plan,
    Precondition,
    unchanged_and_idle,
)
from floodmark.changes.plan.steps import RestoreFile, Step, delete, write
from floodmark.changes.planners.backup import query_id
from floodmark.changes.sources.out_of_reach import ANOTHER_QUERY
from floodmark.checkpoint.layout import (
    COMMITS,
    METADATA,
    OFFSETS,
    STARTS,
    FileInfo,
    batch_id,
    main_file,
)
from floodmark.connectors.delta.offset import is_schema_log
from floodmark.errors import NotEmpty, NotThere, WouldLose
from floodmark.storage import repository as backup
from floodmark.storage.files import Files
from floodmark.storage.repository import Snapshot, object_path


def plan_restore(
    repository: Files,
    location: str,
    target: Files,
    goal: str,
    snapshot: Snapshot,
    since: Since,
    options: RestoreOptions,
) -> Plan:
    there = _there(target)
    if there:
        _refuse_other_content(target, there, snapshot, options.accept)
    sizes = {file.path: file.size for file in (*there, *_notes_of_starts(target, there))}
    moved = goal != snapshot.location
    restored = tuple(_restoring(repository, snapshot, goal, moved, sizes))
    if since.new_id:
        restored = (*(s for s in restored if s.path != METADATA), _fresh_identity(sizes))
    names = {file.path for file in snapshot.files}
    removed = tuple(
        step
        for path in sorted(sizes, reverse=True)
        if path not in names and (belongs(path) or (path in sizes and main_file(path) is not None))
        for step in (delete(path, "not in the snapshot"),)
    )
    newest = max(_log_numbers([*sizes, *names]), default=-1)
    after = "no batch" if snapshot.batch is None else f"batch {snapshot.batch}"
    standing = fingerprint(target)
    conditions = (
        unchanged_and_idle(goal, standing.words)
        if there
        else (Precondition(EMPTY, f"{goal} holds nothing yet"),)
    )
    held = Precondition(SNAPSHOT_THERE, f"{location} holds snapshot {snapshot.id}, whole")
    return Plan(
        "restore",
        f"The checkpoint as of {after}, from snapshot {snapshot.id}",
        location,
        goal,
        (*removed, *restored, *since.sink_steps),
        (*conditions, held),
        standing.digest,
        standing.words,
        newest + 1,
        {
            "snapshot": snapshot.id,
            "accept": sorted(options.accept),
            "keep_identity": options.keep_identity,
            "sink": options.sink,
            FOLDER_MODE: snapshot.folder_mode,
            NEEDED: sorted({item.accept for item in since.consequences if item.accept}),
        },
        (f"It was {snapshot.location}, query {snapshot.query_id}.", *since.notes),
        since.consequences,
        sink=since.sink,
    )


def restores(plan: Plan, snapshot: Snapshot) -> bool:
    """Whether a plan restores what the snapshot has, and nothing else of the repository."""
    contents = {(file.path, object_path(file.sha256)) for file in snapshot.files}
    return all(
        (step.path, step.origin) in contents for step in plan.steps if isinstance(step, RestoreFile)
    )


def _fresh_identity(sizes: dict[str, int]) -> Step:
    return write(
        METADATA,
        fresh_identity(),
        "a new query id: sinks that remember the old one would skip the batches",
        METADATA in sizes,
    )


def _refuse_other_content(
    target: Files, there: tuple[FileInfo, ...], snapshot: Snapshot, accept: Collection[str]
) -> None:
    if not any(belongs(file.path) for file in there):
        raise NotEmpty(
            f"{target.root} holds {there[0].path}, and no checkpoint",
            "Its files would be mixed with those of the checkpoint.",
            "Name the checkpoint's own folder, or one that does not exist yet.",
        )
    found = query_id(target)
    if found is not None and found != snapshot.query_id and ANOTHER_QUERY not in accept:
        raise WouldLose(
            f"{target.root} is another query's checkpoint: {found}",
            f"Snapshot {snapshot.id} is of query {snapshot.query_id}, from {snapshot.location}. "
            "A rewind gives a query a new id; else it is another stream.",
            f"Restore it elsewhere, or accept it by name: --accept {ANOTHER_QUERY}. What is there "
            "is kept until `floodmark forget`.",
        )


def _there(target: Files) -> tuple[FileInfo, ...]:
    try:
        found = target.list().files
    except NotThere:
        return ()
    return tuple(file for file in found if not file.path.startswith("_floodmark/"))


def _notes_of_starts(target: Files, there: tuple[FileInfo, ...]) -> tuple[FileInfo, ...]:
    """Return the notes of starts after the snapshot, which describe code that made other state."""
    return target.list(STARTS).files if there else ()


def _restoring(
    repository: Files, snapshot: Snapshot, goal: str, moved: bool, sizes: dict[str, int]
) -> Iterator[Step]:
    for file in snapshot.files:
        if moved and (is_operator_metadata(file.path) or is_schema_log(file.path)):
            change = moved_schema_log if is_schema_log(file.path) else moved_operator_metadata
            data = change(backup.fetch(repository, file), goal)
            step = write(file.path, data, "paths inside lead to this place", file.path in sizes)
            yield replace(step, mode=file.mode)
            continue
        yield RestoreFile(
            file.path,
            f"as of {snapshot.id}",
            object_path(file.sha256),
            size=file.size,
            replaces=file.path in sizes,
            mode=file.mode,
        )


def _log_numbers(paths: list[str]) -> Iterator[int]:
    for path in paths:
        folder, _, name = path.partition("/")
        number = batch_id(name)
        if folder in (OFFSETS, COMMITS) and number is not None:
            yield number
