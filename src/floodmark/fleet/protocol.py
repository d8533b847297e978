"""Shows the three steps of a batch: planned, processed, committed, with their numbers."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from floodmark.checkpoint.layout import COMMITS, OFFSETS
from floodmark.checkpoint.model import Checkpoint
from floodmark.checkpoint.state_chain import next_batch


class StepState(str, Enum):
    DONE = "done"
    NOW = "now"
    """The step runs, or it died here."""
    WAITING = "waiting"


@dataclass(frozen=True)
class ProtocolStep:
    name: str
    file: str
    """The file that the step leaves in the checkpoint."""
    state: StepState
    words: str
    at_ms: int | None


def protocol_steps(checkpoint: Checkpoint) -> tuple[ProtocolStep, ...]:
    """Return the steps of the newest batch."""
    batch = checkpoint.latest_batch
    if batch is None:
        waiting = StepState.WAITING
        return (
            ProtocolStep("Plan", f"{OFFSETS}/0", waiting, "No batch was planned yet.", None),
            ProtocolStep("Process", "sink and state", waiting, "", None),
            ProtocolStep("Commit", f"{COMMITS}/0", waiting, "", None),
        )
    times = {file.path: file.mtime_ms for file in checkpoint.files}
    committed = checkpoint.in_flight_batch is None
    version = batch + 1
    state = f"state version {version}" if checkpoint.state_operators else "no state"
    done = StepState.DONE if committed else StepState.NOW
    going_on = next_batch(checkpoint)
    return (
        ProtocolStep(
            "Plan",
            f"{OFFSETS}/{batch}",
            StepState.DONE,
            f"Batch {batch:,} knows where each source ends.",
            checkpoint.batch_time_ms or times.get(f"{OFFSETS}/{batch}"),
        ),
        ProtocolStep(
            "Process",
            f"sink, {state}",
            done,
            "The sink has the rows." if committed else "It runs now, or it died here.",
            None,
        ),
        ProtocolStep(
            "Commit",
            f"{COMMITS}/{batch}",
            StepState.DONE if committed else StepState.WAITING,
            f"A restart goes on with batch {going_on:,}."
            if committed
            else f"Not there: a restart runs batch {batch:,} again over the same offsets.",
            times.get(f"{COMMITS}/{batch}"),
        ),
    )
