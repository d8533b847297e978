"""Decides after which batch a new checkpoint begins, and with which numbers. Pure.

One rule protects every sink: a number that was ever planned is never used for other records. The
in-flight batch keeps its number and its range. Where batches are left out, the numbers continue
after the highest one that was ever used.
"""

from __future__ import annotations

from dataclasses import dataclass

from floodmark.checkpoint.model import Checkpoint
from floodmark.errors import BatchPurged, NoAnswer, WouldLose, WrongUse

LISTED = "`floodmark batches CP` lists what is there."


@dataclass(frozen=True)
class UpgradeOptions:
    """The options of an upgrade."""

    from_batch: int | None = None
    new_identity: bool = False
    restart_numbering: bool = False
    drop_in_flight: bool = False
    without_state: bool = False
    map_topic: tuple[tuple[str, str], ...] = ()
    kafka: str | None = None
    """The cluster to ask whether it still has the next records."""
    by_time: bool = False
    """True for another cluster: its offsets are found by the times of the records."""
    accept: tuple[str, ...] = ()
    """Names that the user has accepted."""
    old_kafka: str | None = None
    """The cluster that the stream has read, which knows the times of the records."""
    moved_offsets: tuple[tuple[str, str], ...] = ()
    """The offset that the cluster gave for that time, by source."""


@dataclass(frozen=True)
class ResumePoint:
    after: int | None
    """The batch after which the new stream begins; None: at the very beginning."""
    number: int | None
    """The number of that batch in the new checkpoint."""
    in_flight: int | None
    """The batch that is carried over uncommitted, and runs again with its range."""
    highest: int
    """The highest number that a sink may have seen."""
    has_commit: bool = True
    """False for Spark 2.1, which wrote no commit log."""

    @property
    def shift(self) -> int:
        return 0 if self.after is None or self.number is None else self.number - self.after

    @property
    def top(self) -> int:
        """Return the newest number in the new checkpoint's offsets."""
        done = -1 if self.number is None else self.number
        return done if self.in_flight is None else done + 1


def choose_resume_point(checkpoint: Checkpoint, options: UpgradeOptions) -> ResumePoint:
    latest, committed = checkpoint.latest_batch, checkpoint.committed_batch
    _refuse_lost_offsets(checkpoint)
    if latest is None:
        raise NoAnswer(
            f"{checkpoint.path}: no batch was planned yet, so there is nothing to continue",
            do="Start the new stream with an empty checkpoint.",
        )
    if committed is not None and committed > latest:
        raise WouldLose(
            f"{checkpoint.path}: commits/{committed} is newer than the newest offset entry",
            "The offset entries of the last batches are missing.",
            "`floodmark doctor CP` says more; choose a batch that is whole with --from-batch.",
        )
    if options.from_batch is not None:
        return _from_batch(checkpoint, options, options.from_batch)
    if committed is None:
        return _without_commits(checkpoint, options, latest)
    require_entry(checkpoint, committed)
    return _after_commit(checkpoint, options, latest, committed)


def _refuse_lost_offsets(checkpoint: Checkpoint) -> None:
    if checkpoint.latest_batch is None and checkpoint.committed_batch is not None:
        raise WouldLose(
            f"{checkpoint.path}: commits/{checkpoint.committed_batch} is there and no offset "
            "entry is",
            "The folder offsets/ was lost: nothing says how far the sources were read.",
            "Restore it from a backup; `floodmark doctor CP` says more.",
        )


def _from_batch(checkpoint: Checkpoint, options: UpgradeOptions, batch: int) -> ResumePoint:
    latest, committed = checkpoint.latest_batch, checkpoint.committed_batch
    assert latest is not None
    require_committed(checkpoint, batch, "--from-batch")
    if batch == committed:
        return _after_commit(checkpoint, options, latest, batch)
    highest = max(latest, committed or 0)
    return ResumePoint(batch, 0 if options.restart_numbering else highest, None, highest)


def _after_commit(
    checkpoint: Checkpoint, options: UpgradeOptions, latest: int, committed: int
) -> ResumePoint:
    if latest == committed or options.drop_in_flight:
        number = 0 if options.restart_numbering else latest
        return ResumePoint(committed, number, None, latest)
    between = [batch for batch in checkpoint.offset_ids if committed < batch < latest]
    if between:
        raise WouldLose(
            f"{checkpoint.path}: batches {committed + 1} to {latest} are planned and not committed",
            f"Spark would run batch {latest} alone again, and nothing says whether "
            f"batch {between[0]} was finished.",
            f"--drop-in-flight goes on after batch {committed}, and reads them all again.",
        )
    require_entry(checkpoint, latest)
    # Async progress tracking skips numbers: the batch in flight keeps its own.
    number = 0 if options.restart_numbering else latest - 1
    return ResumePoint(committed, number, latest, latest)


def _without_commits(checkpoint: Checkpoint, options: UpgradeOptions, latest: int) -> ResumePoint:
    require_entry(checkpoint, latest)
    if latest == 0:
        if options.drop_in_flight:
            raise NoAnswer(
                f"{checkpoint.path}: without its first batch there is nothing to continue",
                do="Start the new stream with an empty checkpoint.",
            )
        return ResumePoint(None, None, 0, 0)
    # Spark 2.1 wrote no commits: it takes every batch before the newest as finished.
    before = latest - 1
    require_entry(checkpoint, before)
    if options.drop_in_flight:
        number = 0 if options.restart_numbering else latest
        return ResumePoint(before, number, None, latest, has_commit=False)
    number = 0 if options.restart_numbering else before
    return ResumePoint(before, number, latest, latest, has_commit=False)


def require_committed(checkpoint: Checkpoint, batch: int, option: str) -> None:
    """Refuse a batch unless both its entries exist and can be read."""
    if batch < 0:
        raise WrongUse(f"{option} {batch}: batches are numbered from 0", do=LISTED)
    committed = checkpoint.committed_batch
    if committed is None or batch > committed:
        last = "none is" if committed is None else f"the last one is {committed}"
        raise WrongUse(f"{option} {batch}: that batch is not committed; {last}", do=LISTED)
    _refuse_lost_offsets(checkpoint)
    there = sorted(set(checkpoint.offset_ids) & set(checkpoint.commit_ids))
    if batch not in there:
        oldest = f"the oldest batch still logged is {there[0]}" if there else "none is logged whole"
        raise BatchPurged(
            f"{option} {batch}: cannot go back to it; {oldest}",
            "Spark deletes old entries (spark.sql.streaming.minBatchesToRetain), and async "
            "progress tracking leaves some out.",
            LISTED,
        )
    require_entry(checkpoint, batch)


def require_entry(checkpoint: Checkpoint, batch: int) -> None:
    if batch in checkpoint.offsets:
        return
    checkpoint.refuse_broken_offsets(
        batch, "Restore it from a backup, or choose an earlier batch with --from-batch."
    )
    raise BatchPurged(
        f"{checkpoint.path}: batch {batch} has no offset entry",
        "Spark deletes old entries (spark.sql.streaming.minBatchesToRetain).",
        LISTED,
    )
