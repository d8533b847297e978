"""Takes, renews and releases the lease of a checkpoint: one run at a time, each with a number.

Spark has no lock of its own: two applications on one checkpoint corrupt each other
quietly until one of them dies. A lease never stops a restart: a run that was killed
leaves it behind, and the next one sees that its processes are gone, or that its beat
stands still, and takes the next number. A run that was only paused finds the higher
number when it comes back, and stops (see storage/lease_files.py for the files).
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
    """Who uses the checkpoint now; waits a little where that is not plain at once."""
    holder = read_holder(files)
    if holder is None or _found_gone.get(holder.run) == holder.beat:
        return None
    if holder.run in _left_behind:
        return None
    if holder.run in _held:
        return holder if _held[holder.run].active() else None
    if _is_of_this_process(holder):
        return None  # all that this process holds is in _held
    found = living(files, holder, pause)
    if found is None:
        _found_gone[holder.run] = holder.beat
    return found


def _is_of_this_process(holder: Holder) -> bool:
    """A lease or claim that a full disk kept, or that could be taken only half."""
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
        """Another run has taken the checkpoint over."""
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
            # Storage that does not answer for once is no reason to stop a query.
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
        """Asks the storage, once it is so it stays so."""
        if not self.lost:
            epochs = claimed_epochs(self._files)
            self.lost = bool(epochs and epochs[-1] > self.epoch) or self._replaced()
        return self.lost

    def _replaced(self) -> bool:
        """A lease of another run; one with a lower number is a paused run's last, late beat."""
        now = read_lease(self._files)
        return now is not None and now.run != self.run and not 0 < now.epoch < self.epoch

    def require(self) -> None:
        """Refuses where another run has taken the checkpoint over."""
        if self.superseded():
            raise superseded(self._holder.pipeline, self._files.root)

    def hold(self, active: Callable[[], bool], when_lost: Callable[[], Any] | None = None) -> None:
        """Renews from now on, for as long as `active` says."""
        self.active = active
        self._when_lost = when_lost or (lambda: None)
        self._thread.start()

    def release(self) -> None:
        with self._lock:
            if self._ended.is_set():
                return
            self._ended.set()
            _held.pop(self.run, None)
            # A full or read-only disk may keep the files: to this process the run is over.
            leave_behind(self.run)
            with contextlib.suppress(FloodmarkError, OSError):
                if not self.superseded():
                    self._files.delete([PATH])  # first: it needs no room, and makes some
                    self._files.write(
                        claim_path(self.epoch),
                        render(replace(self._holder, ended=True)),
                    )


class NoLease:
    """In place of a lease where its file cannot be written."""

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
        "This one had not answered for a while and was taken for dead, or the other one was "
        "started with --allow checkpoint-in-use. It writes nothing more.",
        "Leave the other run alone, or stop it and start this one again.",
    )


_held: dict[str, Lease] = {}
_leases: dict[str, Lease] = {}
_left_behind: set[str] = set()
_found_gone: dict[str, int] = {}
"""Runs that were found dead, each with the beat that it had then."""


def leave_behind(run: str) -> None:
    """A run of this very process that is over, though its lease may still be there.

    Its JVM died, or the storage took no change. The process is the same to the system, so
    nothing else tells that this lease is over.
    """
    _left_behind.add(run)


def held_lease(run: str | None) -> Lease | None:
    """The lease that a run of this very process took, though it may have ended since."""
    return _leases.get(run) if run else None


def take(
    files: WritableFiles,
    pipeline: str,
    jvm: Process | None,
    force: bool = False,
    run: str | None = None,
) -> Lease:
    """Holds the checkpoint, or refuses: looking and taking are one step by the claim's number.

    `force` takes it from a run that lives; that run is superseded, and stops.
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
        # Another run may take the same number in this moment: one of the two is told so.
        if not files.create(claim_path(epoch), render(holder)):
            continue
        if claimed_epochs(files)[-1:] == [epoch]:
            return _taken(files, holder, epochs)
        # Others went by while this one looked, and cleared the number away: start over.
        files.delete([claim_path(epoch)])
    raise InUse(
        f"{files.root}: other runs take it at the same time",
        f"{_TRIES} times in a row another run was quicker.",
        "Start one run only.",
    )


def _taken(files: WritableFiles, holder: Holder, earlier: list[int]) -> Lease:
    lease = Lease(files, holder, lambda: True)
    files.write(PATH, render(holder))
    _held[holder.run] = _leases[holder.run] = lease
    # Only lower numbers: the highest is what tells a paused run that it is over.
    files.delete(claim_path(epoch) for epoch in earlier)
    return lease


def in_use(location: str, holder: Holder) -> InUse:
    return InUse(
        f"{location} is in use by {holder.words}",
        "Two queries on one checkpoint write each other's batches until one of them fails; "
        "Spark itself does not notice in time.",
        "Stop that run first (SIGTERM lets it finish its batch), or give this one a "
        "checkpoint of its own.",
    )


def _forget_parents_leases() -> None:
    _held.clear()
    _leases.clear()


# A forked child holds nothing of what its parent does.
os.register_at_fork(after_in_child=_forget_parents_leases)
