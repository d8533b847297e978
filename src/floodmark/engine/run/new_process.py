"""What a run takes along into the new process that it becomes when its JVM has died.

PySpark keeps objects of the JVM in modules, functions and threads, so a new JVM needs a new
Python: the run executes its own command line again, in the same process of the system, and
this says what happened before.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from floodmark.engine.run.failure import Failure, FailureKind
from floodmark.errors import StoppedMidway

_VARIABLE = "FLOODMARK_CARRIED"


@dataclass(frozen=True)
class CarriedStream:
    failures: tuple[Failure, ...]
    restarts: int
    batches: int
    unreported: int
    rows: int
    first_batch: int | None
    last_batch: int | None
    lease: str | None
    """The run's name in a lease that only the dead JVM could have given back."""


@dataclass(frozen=True)
class Carried:
    streams: Mapping[str, CarriedStream] = field(default_factory=dict)
    log: str | None = None


class NewJvmNeeded(StoppedMidway):
    """The JVM has died, and the restart policy wants another: `carried` goes with it."""

    def __init__(self, how: str, carried: Carried) -> None:
        super().__init__(how, do="Start again: the stream goes on from its checkpoint.")
        self.carried = carried


def take_carried() -> Carried:
    """What the process before this one left, once."""
    text = os.environ.pop(_VARIABLE, None)
    if text is None:
        return Carried()
    value = json.loads(text)
    return Carried({name: _stream(one) for name, one in value["streams"].items()}, value["log"])


def _stream(value: dict[str, Any]) -> CarriedStream:
    failures = tuple(
        Failure(one["batch"], tuple(one["offsets"]), one["cause"], FailureKind(one["kind"]))
        for one in value.pop("failures")
    )
    return CarriedStream(failures, **value)


def start_anew(carried: Carried, folder: Path, command: list[str]) -> None:
    """Becomes the command, in the folder where it was given. Does not return."""
    os.chdir(folder)
    os.environ[_VARIABLE] = json.dumps(asdict(carried), default=lambda kind: kind.value)
    os.execv(command[0], command)  # nosec B606 # the very command that the user gave
