"""`_floodmark/lease.json`: which run uses a checkpoint now.

Spark has no lock of its own: two applications on one checkpoint corrupt each other
quietly until one of them dies. The lease is advice, and never stops a restart: a run
that was killed leaves it behind, and the next one sees that its processes are gone,
or that its heartbeat stands still, and takes it over.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from floodmark.errors import FloodmarkError
from floodmark.storage.files import Files
from floodmark.storage.holder import PATH, Holder, read_holder, render
from floodmark.storage.process import Process, host_name, is_running, this_process

BEAT_SECONDS = 10.0
# A heartbeat this old was not missed by a slow disk or a long pause of the machine.
_LONG_GONE_SECONDS = 600.0
# A driver's JVM notices that its Python has been killed and ends by itself.
_JVM_ENDS_WITHIN_SECONDS = 20.0


def live_holder(files: Files, pause: Callable[[float], Any] = time.sleep) -> Holder | None:
    """Who uses the checkpoint now; waits a little where that is not plain at once."""
    holder = read_holder(files)
    if holder is None:
        return None
    if holder.run in _held:
        return holder if _held[holder.run].active() else None
    if holder.host == host_name():
        return holder if _still_running(holder, pause) else None
    if time.time() - holder.beat_ms / 1000 > _LONG_GONE_SECONDS:
        return None
    return _beats_on(files, holder, pause)


def _still_running(holder: Holder, pause: Callable[[float], Any]) -> bool:
    waited = 0.0
    while any(is_running(one) for one in holder.processes):
        # The first is the Python driver: as long as it lives, the run lives.
        if is_running(holder.processes[0]) or waited >= _JVM_ENDS_WITHIN_SECONDS:
            return True
        pause(0.1)
        waited += 0.1
    return False


def _beats_on(files: Files, holder: Holder, pause: Callable[[float], Any]) -> Holder | None:
    """Another host's clock may be wrong, so its heartbeat is watched, not compared."""
    waited = 0.0
    while waited < 2.5 * BEAT_SECONDS:
        pause(1.0)
        waited += 1.0
        now = read_holder(files)
        if now is None:
            return None
        if (now.run, now.beat) != (holder.run, holder.beat):
            return now
    return None


class Lease:
    """A lease that this process holds and renews until it is released."""

    def __init__(self, files: Files, holder: Holder, active: Callable[[], bool]) -> None:
        self._files = files
        self._holder = holder
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self.active = active
        self.lost = False
        """Another run has taken the checkpoint over."""
        self._thread = threading.Thread(target=self._renew, name="floodmark-lease", daemon=True)

    def _renew(self) -> None:
        while not self._ended.wait(BEAT_SECONDS):
            if not self.active():
                self.release()
                return
            # Storage that does not answer for once is no reason to stop a query.
            with contextlib.suppress(FloodmarkError, OSError):
                self.beat()

    def beat(self) -> None:
        with self._lock:
            if self._ended.is_set():
                return
            now = read_holder(self._files)
            if now is not None and now.run != self._holder.run:
                self.lost = True
                return
            self._holder = replace(
                self._holder, beat=self._holder.beat + 1, beat_ms=int(time.time() * 1000)
            )
            self._files.write(PATH, render(self._holder))

    def hold(self, active: Callable[[], bool]) -> None:
        """Renews from now on, for as long as `active` says."""
        self.active = active
        self._thread.start()

    def release(self) -> None:
        with self._lock:
            self._ended.set()
            _held.pop(self._holder.run, None)
            with contextlib.suppress(FloodmarkError, OSError):
                now = read_holder(self._files)
                if now is not None and now.run == self._holder.run:
                    self._files.delete([PATH])


class NoLease:
    """In place of a lease where its file cannot be written."""

    lost = False

    def hold(self, active: Callable[[], bool]) -> None:
        return

    def release(self) -> None:
        return


_held: dict[str, Lease] = {}


def take(files: Files, run: str, pipeline: str, jvm: Process | None) -> Lease:
    """Holds the checkpoint; whoever held it before was judged to be gone."""
    processes = (this_process(), *([jvm] if jvm else []))
    holder = Holder(run, pipeline, host_name(), processes, 0, int(time.time() * 1000))
    if not files.create(PATH, render(holder)):
        files.write(PATH, render(holder))
    lease = Lease(files, holder, lambda: True)
    _held[run] = lease
    return lease


def _forget_parents_leases() -> None:
    _held.clear()


# A forked child holds nothing of what its parent does.
os.register_at_fork(after_in_child=_forget_parents_leases)
