"""Reads who holds a checkpoint: `_floodmark/lease.json` and claims in `_floodmark/epochs/`.

A run takes a checkpoint by creating the claim `epochs/N.json`, where N is one more than the
highest number. Creating is atomic, so of two runs that start at the same time only one gets N. A
claim stays when its run ends: the number only grows, and a run that sees a higher number than its
own has been superseded. `lease.json` exists while a run holds the checkpoint; its beat increases
every ten seconds.

Whether a holder lives is proved or watched: by its processes where they can be seen (same boot,
same PID namespace), else by its beat, which must stand still for several beats. No other
machine's clock is trusted.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

from floodmark.checkpoint.layout import NOTES, batch_id
from floodmark.checkpoint.relative_path import RelativePath
from floodmark.errors import FileGone
from floodmark.storage.files import Files
from floodmark.storage.machine.process import (
    Process,
    boot_id,
    host_name,
    is_running,
    pid_namespace,
    this_process,
)

PATH = RelativePath(f"{NOTES}/lease.json")
EPOCHS = f"{NOTES}/epochs"
BEAT_SECONDS = 10.0
# Three beats may be missed, because of slow storage or a long pause of the machine.
STANDS_STILL_SECONDS = 35.0
_POLL_SECONDS = 1.0
# A driver's JVM notices when its Python has been killed, and ends.
_JVM_ENDS_WITHIN_SECONDS = 20.0


@dataclass(frozen=True)
class Holder:
    """The holder of a checkpoint, according to the files."""

    run: str
    pipeline: str
    host: str
    processes: tuple[Process, ...]
    """The driver's Python process and its JVM."""
    beat: int
    beat_ms: int
    """The time by the holder's own clock, only for people to read."""
    epoch: int = 0
    """The run's number; 0 in a lease of a release without numbers."""
    chain: str = ""
    """The name of the row of numbers: a copied checkpoint begins another row."""
    boot: str | None = field(default_factory=boot_id)
    namespace: str | None = field(default_factory=pid_namespace)
    ended: bool = False

    @property
    def words(self) -> str:
        pids = ", ".join(str(one.pid) for one in self.processes)
        return f"pipeline {self.pipeline} on host {self.host}, process {pids}"


def new_holder(
    run: str, pipeline: str, jvm: Process | None, epoch: int, chain: str, now_ms: int
) -> Holder:
    processes = (this_process(), *([jvm] if jvm else []))
    return Holder(run, pipeline, host_name(), processes, 0, now_ms, epoch, chain)


def render(holder: Holder) -> bytes:
    return json.dumps({"floodmark": "lease", "version": 1, **asdict(holder)}, indent=1).encode()


def parse(data: bytes) -> Holder | None:
    """Parse a holder; return None for anything else: an unreadable lease holds nothing."""
    try:
        value = json.loads(data)
        return Holder(
            str(value["run"]),
            str(value["pipeline"]),
            str(value["host"]),
            tuple(_process(one) for one in value["processes"]),
            int(value["beat"]),
            int(value["beat_ms"]),
            int(value.get("epoch", 0)),
            str(value.get("chain", "")),
            _text(value.get("boot")),
            _text(value.get("namespace")),
            value.get("ended") is True,
        )
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
        return None


def _process(value: Any) -> Process:
    started = value["started"]
    return Process(int(value["pid"]), None if started is None else int(started))


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def claim_path(epoch: int) -> RelativePath:
    return RelativePath(f"{EPOCHS}/{epoch}.json")


def claimed_epochs(files: Files) -> list[int]:
    """Return the claimed numbers that were not removed yet, in order."""
    return epochs_of(files.level(EPOCHS).files)


def epochs_of(names: Iterable[str]) -> list[int]:
    """Return the claimed numbers from the names in the folder of claims."""
    found = (batch_id(name.removesuffix(".json")) for name in names if name.endswith(".json"))
    return sorted(epoch for epoch in found if epoch is not None)


def read_claim(files: Files, epoch: int) -> Holder | None:
    return _read(files, claim_path(epoch))


def read_lease(files: Files) -> Holder | None:
    return _read(files, PATH)


def _read(files: Files, path: str) -> Holder | None:
    try:
        return parse(files.read(RelativePath(path)))
    except FileGone:
        return None


def read_holder(files: Files) -> Holder | None:
    """Return the run that holds the checkpoint, alive or not; None where the last one has ended."""
    lease = _read(files, PATH)
    epochs = claimed_epochs(files)
    if not epochs or (lease is not None and lease.epoch >= epochs[-1]):
        return lease
    claim = read_claim(files, epochs[-1])
    if lease is not None and lease.epoch == 0:
        return lease  # of an earlier release, which knows of no claims
    return None if claim is None or claim.ended else claim


def proved(holder: Holder) -> bool | None:
    """Whether the holder's processes run, where they can be seen from here; None: they cannot."""
    if holder.boot is None or holder.boot != boot_id() or holder.namespace != pid_namespace():
        return None
    if not holder.processes or any(one.started is None for one in holder.processes):
        return None
    return any(is_running(one) for one in holder.processes)


def living(
    files: Files, holder: Holder, pause: Callable[[float], Any], whole: bool = True
) -> Holder | None:
    """Return the holder if it lives; wait where that is unclear.

    `whole`: give a JVM whose Python was killed time to end.
    """
    waited = 0.0
    while proved(holder):
        # The first process is the Python driver: while it lives, the run lives.
        if is_running(holder.processes[0]) or not whole or waited >= _JVM_ENDS_WITHIN_SECONDS:
            return holder
        pause(0.1)
        waited += 0.1
    return None if proved(holder) is False else _beats_on(files, holder, pause)


def _beats_on(files: Files, holder: Holder, pause: Callable[[float], Any]) -> Holder | None:
    waited = 0.0
    while waited < STANDS_STILL_SECONDS:
        pause(_POLL_SECONDS)
        waited += _POLL_SECONDS
        now = read_holder(files)
        if now is None:
            return None
        if (now.run, now.beat) != (holder.run, holder.beat):
            return now
    return None
