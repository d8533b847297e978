"""Proposes what to do with a checkpoint next: commands to copy. Nothing is executed here."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from floodmark.checkpoint.model import Checkpoint

PLANNED = ("repair", "rewind", "upgrade", "compact")
"""Verbs whose plan can be shown."""


@dataclass(frozen=True)
class NextStep:
    title: str
    why: str
    command: str
    plan: str | None = None
    """The verb whose plan can be shown."""


def next_steps(
    checkpoint: Checkpoint, path: str, repairable: int, errors: int
) -> tuple[NextStep, ...]:
    place = shlex.quote(path)
    found: list[NextStep] = []
    if repairable:
        what = "finding" if repairable == 1 else "findings"
        found.append(
            NextStep(
                "Repair it",
                f"{repairable} {what} can be repaired with a small change.",
                f"floodmark repair {place}",
                "repair",
            )
        )
    if errors:
        found.append(
            NextStep("See what is wrong", "With sources and sinks.", f"floodmark doctor {place}")
        )
    committed = checkpoint.committed_batch
    found.append(
        NextStep(
            "Judge changed code",
            "Before a restart with another version of the application.",
            f"floodmark check {place} APP.py",
        )
    )
    earlier = rewindable(checkpoint)
    if earlier is not None:
        found.append(
            NextStep(
                "Go back",
                f"To an earlier batch; {earlier:,} is the one before the last.",
                f"floodmark rewind {place} --to-batch {earlier}",
                "rewind",
            )
        )
    if committed is not None:
        new = shlex.quote(path.rstrip("/") + "-new")
        found += [
            NextStep(
                "Move on to a new checkpoint",
                f"It begins right after batch {committed:,}.",
                f"floodmark upgrade {place} {new}",
                "upgrade",
            ),
            NextStep(
                "Keep a snapshot",
                "Also while the query runs.",
                f"floodmark backup {place} REPOSITORY --execute",
            ),
            NextStep(
                "Remove what nothing needs",
                "Old versions of the state and leftovers.",
                f"floodmark compact {place}",
                "compact",
            ),
        ]
    return tuple(found)


def dstreams_next_steps(path: str, errors: int) -> tuple[NextStep, ...]:
    place, new = shlex.quote(path), shlex.quote(path.rstrip("/") + "-new")
    wrong = NextStep("See what is wrong", "With what to do.", f"floodmark doctor {place}")
    return (
        *([wrong] if errors else []),
        NextStep(
            "Leave for Structured Streaming",
            "Its state becomes the state of the new query, and its input goes on after it.",
            f"floodmark leave-dstreams {place} {new} --app APP.py",
        ),
        NextStep(
            "Go on with changed code",
            "A recovery runs the saved code. This begins a new context with the newest state.",
            "floodmark run APP.py --fresh-with-state",
        ),
        NextStep("Read its state", "Keys and values, by partition.", f"floodmark state {place}"),
        NextStep("Read its batches", "With what each has read.", f"floodmark batches {place}"),
    )


def rewindable(checkpoint: Checkpoint) -> int | None:
    """Return the batch before the last committed one, if both logs still have it."""
    done: Sequence[int] = sorted(set(checkpoint.commit_ids) & set(checkpoint.offset_ids))
    return done[-2] if len(done) > 1 else None
