"""Takes, renews and releases the lease of a checkpoint: one run at a time, each with a number.

Spark has no lock of its own: two applications on one checkpoint corrupt each other
silently until one of them dies. A lease never stops a restart. A killed run leaves its lease
behind; the next run sees that its processes are gone, or that its beat has stopped, and takes
the next number. A run that was only paused finds the higher number when it continues, and
stops (storage/lease_files.py describes the files).
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from floodmark.errors import FloodmarkError, InUse, Superseded
from floodmark.storage.files import Files, WritableFiles
from floodmark.storage.lease_files import (
    BEAT_SECONDS,
    PATH,
    Holder,
    claim_path,
    claimed_epochs,
    living,
    new_holder,
    read_claim,
    read_holder,
    read_lease,
    render,
)
from floodmark.storage.machine.process import Process, boot_id, pid_namespace, this_process

__all__ = ["PATH", "Holder", "Lease", "held_lease", "live_holder", "read_holder", "render", "take"]

_TRIES = 5


def live_holder(files: Files, pause: Callable[[float], Any] = time.sleep) -> Holder | None:
    """Return the run that uses the checkpoint now; wait a little where that is unclear."""
    holder = read_holder(files)
    if holder is None or _found_gone.get(holder.run) == holder.beat:
        return None
    if holder.run in _left_behind:
        return None
    if holder.run in _held:
        return holder if _held[holder.run].active() else None
    if _is_of_this_process(holder):
        return None  # _held has all leases of this process
    found = living(files, holder, pause)
    if found is None:
        _found_gone[holder.run] = holder.beat
    return found


def _is_of_this_process(holder: Holder) -> bool:
    """Whether a lease or claim is a remainder of this process: a full disk can leave one."""
    me = this_process()
    return (
        me.started is not None
        and holder.processes[:1] == (me,)
        and (holder.boot, holder.namespace) == (boot_id(), pid_namespace())
    )


class Lease:
    """A lease that this process holds and renews until it is released."""

    def __init__(self, files: WritableFiles, holder: Holder, active: Callable[[], bool]) -> None:
        self._files = files
        self._holder = holder
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self.active = active
        self._when_lost: Callable[[], Any] = lambda: None
        self.lost = False
        """True after another run has taken over the checkpoint."""
        self._thread = threading.Thread(target=self._renew, name="floodmark-lease", daemon=True)

    @property
    def run(self) -> str:
        return self._holder.run

    @property
    def epoch(self) -> int:
        return self._holder.epoch

    @property
    def chain(self) -> str:
        return self._holder.chain

    def _renew(self) -> None:
        while not self._ended.wait(BEAT_SECONDS):
            if not self.active():
                self.release()
                return
            # One failed answer of the storage is no reason to stop a query.
            with contextlib.suppress(FloodmarkError, OSError):
                self.beat()
            if self.lost:
                self._when_lost()
                return

    def beat(self) -> None:
        with self._lock:
            if self._ended.is_set() or self.superseded():
                return
            self._holder = replace(
                self._holder, beat=self._holder.beat + 1, beat_ms=int(time.time() * 1000)
            )
            self._files.write(PATH, render(self._holder))

    def superseded(self) -> bool:
        """Whether another run took over, according to the storage; the answer never goes back."""
        if not self.lost:
            epochs = claimed_epochs(self._files)
            self.lost = bool(epochs and epochs[-1] > self.epoch) or self._replaced()
        return self.lost

    def _replaced(self) -> bool:
        """Whether the lease is another run's; a lower number is only a paused run's late beat."""
        now = read_lease(self._files)
        return now is not None and now.run != self.run and not 0 < now.epoch < self.epoch

    def require(self) -> None:
        """Raise an error if another run has taken over the checkpoint."""
        if self.superseded():
            raise superseded(self._holder.pipeline, self._files.root)

    def hold(self, active: Callable[[], bool], when_lost: Callable[[], Any] | None = None) -> None:
        """Renew the lease from now on, for as long as `active` returns true."""
        self.active = active
        self._when_lost = when_lost or (lambda: None)
        self._thread.start()

    def release(self) -> None:
        with self._lock:
            if self._ended.is_set():
                return
            self._ended.set()
            _held.pop(self.run, None)
            # A full or read-only disk may keep the files: for this process the run has ended.
            leave_behind(self.run)
            with contextlib.suppress(FloodmarkError, OSError):
                if not self.superseded():
                    self._files.delete([PATH])  # first: it needs no space, and frees some
                    self._files.write(
                        claim_path(self.epoch),
                        render(replace(self._holder, ended=True)),
                    )


class NoLease:
    """Replaces a lease where its file cannot be written."""

    lost = False

    run = None

    def superseded(self) -> bool:
        return False

    def hold(self, active: Callable[[], bool], when_lost: Callable[[], Any] | None = None) -> None:
        return

    def release(self) -> None:
        return


def superseded(pipeline: str, location: str) -> Superseded:
    return Superseded(
        f"pipeline {pipeline}: another run has taken over {location}",
        "This run had not answered for a while and looked dead, or the other run was "
        "started with --allow checkpoint-in-use. This run writes nothing more.",
        "Leave the other run alone, or stop it and start this one again.",
    )


_held: dict[str, Lease] = {}
_leases: dict[str, Lease] = {}
_left_behind: set[str] = set()
_found_gone: dict[str, int] = {}
"""Runs that were found dead, each with its beat at that time."""


def leave_behind(run: str) -> None:
    """Remember a run of this process as ended, though its lease may still exist.

    Its JVM died, or the storage accepted no change. Its process is still alive, so nothing else
    shows that this lease has ended.
    """
    _left_behind.add(run)


def held_lease(run: str | None) -> Lease | None:
    """Return the lease that a run of this process took, even if it has ended since."""
    return _leases.get(run) if run else None


def take(
    files: WritableFiles,
    pipeline: str,
    jvm: Process | None,
    force: bool = False,
    run: str | None = None,
) -> Lease:
    """Take the checkpoint, or refuse: the claim's number makes this one step.

    `force` takes it from a living run; that run is superseded, and stops.
    """
    run = run or str(uuid.uuid4())
    for _ in range(_TRIES):
        epochs = claimed_epochs(files)
        last = read_claim(files, epochs[-1]) if epochs else None
        live = None if force else live_holder(files)
        if live is not None:
            raise in_use(files.root, live)
        epoch = epochs[-1] + 1 if epochs else 1
        chain = last.chain if last and last.chain else uuid.uuid4().hex
        holder = new_holder(run, pipeline, jvm, epoch, chain, int(time.time() * 1000))
        # Another run may claim the same number at this moment: only one of the two succeeds.
        if not files.create(claim_path(epoch), render(holder)):
            continue
        if claimed_epochs(files)[-1:] == [epoch]:
            return _taken(files, holder, epochs)
        # Other runs came and went during the look, and removed the number: start over.
        files.delete([claim_path(epoch)])
    raise InUse(
        f"{files.root}: other runs are taking it at the same time",
        f"Another run was faster {_TRIES} times in a row.",
        "Start one run only.",
    )


def _taken(files: WritableFiles, holder: Holder, earlier: list[int]) -> Lease:
    lease = Lease(files, holder, lambda: True)
    files.write(PATH, render(holder))
    _held[holder.run] = _leases[holder.run] = lease
    # Remove only lower numbers: the highest one shows a paused run that it has ended.
    files.delete(claim_path(epoch) for epoch in earlier)
    return lease


def in_use(location: str, holder: Holder) -> InUse:
    return InUse(
        f"{location} is in use by {holder.words}",
        "Two queries on one checkpoint overwrite each other's batches until one of them fails; "
        "Spark itself notices this too late.",
        "Stop that run first (SIGTERM lets it finish its batch), or give this one a "
        "checkpoint of its own.",
    )


def _forget_parents_leases() -> None:
    _held.clear()
    _leases.clear()


# A forked child does not hold its parent's leases.
os.register_at_fork(after_in_child=_forget_parents_leases)
