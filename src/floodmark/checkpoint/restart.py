"""Says what Spark does if the query starts now: which batch runs again, goes on, or fails. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from itertools import pairwise

from floodmark.checkpoint.layout import COMMITS, METADATA, OFFSETS, SOURCES, STATE
from floodmark.checkpoint.model import Checkpoint, Unreadable

_TOO_FEW_TO_TELL = 3


class Action(str, Enum):
    BEGIN = "begin"
    CONTINUE = "continue"
    RERUN = "rerun"
    FAIL = "fail"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Restart:
    """What Spark does with this checkpoint if the query starts now."""

    action: Action
    """`begin` with the first batch, `continue` after the last one, `rerun` the batch in flight,
    `fail`, or `unknown` if a part of the checkpoint was not examined."""
    batch: int | None
    """The batch that Spark runs first; null if it fails before, or if that is not known."""
    words: str
    """One or two sentences for a person."""


def restart(checkpoint: Checkpoint, state_missing: Sequence[str] = ()) -> Restart:
    """Return Spark's own decision, from the newest offset and the newest commit.

    `state_missing`: what the batch needs of the state and is missing, in sentences.
    """
    unexamined = _unexamined_logs(checkpoint)
    if unexamined is not None:
        return Restart(
            Action.UNKNOWN,
            None,
            f"What happens if it restarts now is not known, because {unexamined.path} was not "
            f"examined: {unexamined.reason.rstrip('.')}.",
        )
    decided = _with_unexamined(checkpoint, _decide(checkpoint))
    if state_missing and decided.action in (Action.CONTINUE, Action.RERUN):
        return Restart(
            Action.FAIL,
            decided.batch,
            f"If it restarts now, batch {decided.batch} fails, because the state that it starts "
            f"from is missing: {' '.join(state_missing)} `floodmark doctor "
            f"{shlex.quote(checkpoint.path)}` says more.",
        )
    if decided.action is Action.FAIL or checkpoint.latest_batch is None or checkpoint.query_id:
        return decided
    return replace(
        decided,
        words="The metadata file is missing. Spark 4.2 and later do not start; earlier versions "
        f"choose a new query id without a warning. {decided.words}",
    )


def _unexamined_logs(checkpoint: Checkpoint) -> Unreadable | None:
    """The first part of the logs that decides about a start and was not examined."""
    latest, committed = checkpoint.latest_batch, checkpoint.committed_batch
    opened = {METADATA, OFFSETS, COMMITS, f"{COMMITS}/{committed}", f"{OFFSETS}/{latest}"}
    if latest is not None:
        opened.add(f"{OFFSETS}/{latest - 1}")
    return next((item for item in checkpoint.unexamined if item.path in opened), None)


def _with_unexamined(checkpoint: Checkpoint, decided: Restart) -> Restart:
    """The logs tell what Spark does; what the batch then needs may not have been looked at."""
    needed = [item for item in checkpoint.unexamined if item.path.startswith((STATE, SOURCES))]
    if not needed or decided.action in (Action.BEGIN, Action.FAIL):
        return decided
    words = f"{decided.words} {needed[0].path} was not examined: {needed[0].reason.rstrip('.')}."
    return replace(decided, words=words)


def _decide(checkpoint: Checkpoint) -> Restart:
    latest, committed = checkpoint.latest_batch, checkpoint.committed_batch
    if latest is None:
        return _without_offsets(committed)
    broken = {item.path for item in checkpoint.unreadable}
    # Spark opens the entry before the newest too: it is where the newest batch begins.
    for path in (
        f"{OFFSETS}/{latest}",
        f"{OFFSETS}/{latest - 1}",
        f"{COMMITS}/{committed}",
        METADATA,
    ):
        if path in broken:
            return Restart(Action.FAIL, latest, f"The query does not start: {path} cannot be read.")
    before = latest - 1
    if latest > 0 and before not in checkpoint.offset_ids:
        if committed == latest and is_sparse_by_design(checkpoint):
            return Restart(
                Action.CONTINUE,
                latest + 1,
                "A query with async progress tracking wrote these logs. If it restarts with async "
                f"progress tracking, Spark goes on with batch {latest + 1}. Without it the query "
                f"does not start, because {OFFSETS}/{before} is missing.",
            )
        return Restart(
            Action.FAIL,
            latest,
            f"The query does not start: Spark needs offsets/{before} beside offsets/{latest}, "
            "unless the query runs with async progress tracking.",
        )
    if committed is not None and committed > latest:
        return Restart(
            Action.FAIL,
            latest,
            f"Spark runs batch {latest} again and then fails, because commits/{latest} "
            f"or a later one is already there (the last is commits/{committed}).",
        )
    if committed == latest:
        return Restart(
            Action.CONTINUE,
            latest + 1,
            f"If it restarts now, Spark goes on with batch {latest + 1}.",
        )
    return _rerun(checkpoint, latest, committed)


def is_sparse_by_design(checkpoint: Checkpoint) -> bool:
    """Whether both logs lack the same batches again and again: async progress tracking."""
    planned, committed = checkpoint.offset_ids, checkpoint.commit_ids
    steps = sum(after - before > 1 for before, after in pairwise(planned))
    repeated = steps > 1 or (steps == 1 and len(planned) <= _TOO_FEW_TO_TELL)
    same = committed in (planned, planned[:-1])
    return repeated and same and not checkpoint.state_files


def _without_offsets(committed: int | None) -> Restart:
    if committed is not None:
        return Restart(
            Action.FAIL,
            None,
            f"The query does not start: commits/{committed} exists, but no offset entry does.",
        )
    return Restart(Action.BEGIN, 0, "No batch was planned yet: the query begins with batch 0.")


def _rerun(checkpoint: Checkpoint, latest: int, committed: int | None) -> Restart:
    words = f"If it restarts now, Spark runs batch {latest} again over the same offsets."
    last_done = -1 if committed is None else committed
    skipped = [batch for batch in checkpoint.offset_ids if last_done < batch < latest]
    if committed is None and latest > 0:
        words += " There is no commit log; Spark counts the batches before it as done."
    elif committed is not None and skipped:
        names = f"batch {skipped[0]}" + (f" to {skipped[-1]}" if len(skipped) > 1 else "")
        words += f" Spark does not run {names} again, though no commit says that it finished."
    else:
        words += " Nothing is lost."
    return Restart(Action.RERUN, latest, words)
