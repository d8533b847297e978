"""Plans `backup`: a snapshot of a checkpoint, even while a query writes it.

Commits are listed first. What is listed after them has everything that those commits need,
unless Spark's maintenance removed a file meanwhile: then the listing begins again.
"""

from __future__ import annotations

from floodmark.changes.carry.checkpoint_files import belongs
from floodmark.changes.carry.needed_state import needed_state
from floodmark.changes.carry.origin import refuse_odd_content, without_blocks
from floodmark.changes.fingerprint import fingerprint
from floodmark.changes.plan import SAME_QUERY, Plan, Precondition
from floodmark.changes.plan.steps import TakeSnapshot
from floodmark.checkpoint.layout import (
    COMMITS,
    METADATA,
    OFFSETS,
    FileInfo,
    batch_id,
    is_dstreams_checkpoint,
)
from floodmark.checkpoint.metadata import parse_metadata
from floodmark.checkpoint.model import Checkpoint
from floodmark.errors import (
    FileGone,
    FloodmarkError,
    NotACheckpoint,
    StalePlan,
    StateFileMissing,
    StatePurged,
)
from floodmark.storage.files import Files, Listing
from floodmark.storage.load import Entries, load_listed


def consistent(files: Files) -> Checkpoint:
    """Return the checkpoint at its newest commit whose files are all there."""
    commits = _numbers(files, COMMITS)
    listing = without_blocks(files, files.list())
    if any(is_dstreams_checkpoint(file.path) for file in listing.files):
        raise NotACheckpoint(
            f"{files.root} is a DStreams checkpoint: it cannot be backed up",
            "`backup` keeps the batches of Structured Streaming. DStreams saves the whole "
            "application as one Java object, and has no log of batches.",
            f"Stop the application and copy the folder: cp -r {files.root} DEST",
        )
    refuse_odd_content(files, listing)
    committed = max(commits, default=-1)
    kept = tuple(
        file for file in listing.files if belongs(file.path) and _is_of(file, committed, commits)
    )
    checkpoint = load_listed(files, Listing(kept), Entries.NEWEST, [committed])
    checkpoint.refuse_not_given()
    if committed >= 0 and checkpoint.state_operators:
        try:
            needed_state(checkpoint, committed, files.read)
        except (StateFileMissing, StatePurged) as error:
            if _numbers(files, COMMITS)[-1:] != [committed]:
                raise FileGone(error.what) from None  # the query has moved on: look again
            raise
    return checkpoint


def _numbers(files: Files, log: str) -> list[int]:
    names = files.level(log).files
    return sorted(number for name in names if (number := batch_id(name)) is not None)


def _is_of(file: FileInfo, committed: int, commits: list[int]) -> bool:
    """Whether a file was there before the commits were listed, or is of the batch in flight."""
    folder, _, name = file.path.partition("/")
    if folder == COMMITS:
        return batch_id(name) in commits
    if folder == OFFSETS:
        number = batch_id(name)
        return number is not None and number <= committed + 1
    return True


def plan_backup(files: Files, location: str, repository: str, options: dict[str, object]) -> Plan:
    checkpoint = consistent(files)
    committed = checkpoint.committed_batch
    after = "no batch yet" if committed is None else f"batch {committed}"
    count, size = len(checkpoint.files), checkpoint.bytes
    standing = fingerprint(files)
    step = TakeSnapshot(repository, f"{count:,} files, {size:,} bytes; only new content is written")
    return Plan(
        "backup",
        f"A snapshot of the checkpoint, whole up to {after}",
        location,
        repository,
        (step,),
        (Precondition(SAME_QUERY, f"{location} is still query {checkpoint.query_id}'s"),),
        standing.digest,
        standing.words,
        0,
        {**options, "query_id": checkpoint.query_id},
        ("A query may go on running: the snapshot holds a commit and all that it needs.",),
    )


def refuse_another_query(files: Files, plan: Plan) -> None:
    """Refuse another query's checkpoint; the query itself may run between plan and snapshot."""
    found = query_id(files)
    planned = plan.options.get("query_id")
    if found != planned:
        raise StalePlan(
            f"{plan.origin} now belongs to another query: {found}",
            f"The plan was made for query {planned}.",
            "Plan again, if that is what you want.",
        )


def query_id(files: Files) -> str | None:
    try:
        return parse_metadata(files.read(METADATA)).id
    except FloodmarkError:
        return None
