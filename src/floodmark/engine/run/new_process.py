"""Carries a run's history into the new process that replaces it when its JVM has died.

PySpark keeps objects of the JVM in modules, functions and threads, so a new JVM needs a new
Python. The run executes its own command line again, in the same process of the system, and
passes on what happened before.
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
    """The run's name in a lease that only the dead JVM could have released."""


@dataclass(frozen=True)
class Carried:
    streams: Mapping[str, CarriedStream] = field(default_factory=dict)
    log: str | None = None


class NewJvmNeeded(StoppedMidway):
    """Raised when the JVM has died and the policy wants a new one; `carried` goes with it."""

    def __init__(self, how: str, carried: Carried) -> None:
        super().__init__(how, do="Start again: the stream goes on from its checkpoint.")
        self.carried = carried


def take_carried() -> Carried:
    """Return what the process before this one left, only once."""
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
    """Replace this process by the command, in the folder where the user gave it; never returns."""
    os.chdir(folder)
    os.environ[_VARIABLE] = json.dumps(asdict(carried), default=lambda kind: kind.value)
    os.execv(command[0], command)  # nosec B606 # exactly the command that the user gave
