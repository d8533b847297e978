"""Makes the error with which a run ends: which batch failed, why, and what to do next."""

from __future__ import annotations

import shlex
from pathlib import Path

from floodmark.engine.run.failure import Failure, FailureKind
from floodmark.engine.run.restart_policy import GiveUp
from floodmark.engine.spark.jvm import last_words
from floodmark.errors import FailedForGood, StoppedMidway
from floodmark.secret_text import redacted


def stopped(
    name: str,
    checkpoint: str,
    failure: Failure,
    decision: GiveUp,
    log: Path | None,
    bisecting: str | None,
) -> StoppedMidway:
    """Return the error; `name` says what failed: pipeline sales, query totals.

    `bisecting` is the command that finds the record; "" where there is none for this kind.
    """
    where = f": {failure.batch_words}" if failure.batch is not None else ""
    said = last_words(log) if failure.kind is FailureKind.ENGINE else ""
    told = [f"Its log ends with: {said}"] if said else []
    do = [
        "Nothing is lost: the next start runs the batch again over the same input."
        if failure.batch is not None
        else "No batch was in flight.",
        f"Correct the cause, then start again. `floodmark inspect {shlex.quote(checkpoint)}` shows "
        "the checkpoint's state.",
    ]
    of_code = failure.kind is FailureKind.CODE and failure.batch is not None
    if decision.for_good and of_code and bisecting != "":
        command = bisecting or "floodmark run APP.py --bisect"
        do.insert(1, f"This command finds the record at which it fails: {redacted(command)}")
    if log is not None:
        do.append(f"Spark's log is {log}.")
    kind = FailedForGood if decision.for_good else StoppedMidway
    why = "\n".join([failure.cause, *told, *failure.offsets])
    return kind(f"{name} {decision.words}{where}", why, "\n".join(do))
