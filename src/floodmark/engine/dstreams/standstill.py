"""Notices that Spark runs no task though batches wait: Spark raises no error then.

A StackOverflowError is no exception to Spark's threads: the thread that plans tasks ends, or the
message that would have started them is lost, and the batch's job waits for ever. This can happen
when a start runs many missed batches: Spark plans them all before the first has saved its state,
so the last batch's partitions contain those of all batches before it, however often state is saved.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

_LOOK_SECONDS = 10.0
_STILL_SECONDS = 60.0
_STACK = "-Xss64m"
_ADVICE = (
    "If Spark's log has a StackOverflowError, {}start again with "
    f"--conf spark.driver.extraJavaOptions={_STACK} "
    f"--conf spark.executor.extraJavaOptions={_STACK} (or add {_STACK} to the options that you "
    "give there)."
)


class SchedulerDied(RuntimeError):
    """Raised when the thread that plans Spark's tasks has ended, though its JVM continues."""

    def __init__(self) -> None:
        super().__init__(
            "Spark's dag-scheduler-event-loop has ended, and no job can run any more. "
            + _ADVICE.format("")
        )


class Standstill:
    """Checks Spark every ten seconds; each turn of a run's loop calls it."""

    def __init__(self, ssc: Any, clock: Callable[[], float] = time.monotonic) -> None:
        self._ssc = ssc
        self._clock = clock
        self._looked = self._since = clock()
        self._seen: Any = None
        self._dead = self._said = False

    def words(self) -> str | None:
        """Return a sentence about a standstill, once; raises SchedulerDied."""
        now = self._clock()
        if now - self._looked < _LOOK_SECONDS:
            return None
        self._looked = now
        self._require_scheduler()
        seen = self._standing()
        if seen is None or seen != self._seen:
            self._since, self._seen, self._said = now, seen, False
            return None
        if self._said or now - self._since < _STILL_SECONDS:
            return None
        self._said = True
        return (
            f"no task has run for {now - self._since:.0f} s, though a batch's job waits for one: "
            f"Spark has no free executor, or it has stopped working. "
            + _ADVICE.format("stop this run (SIGTERM, twice) and ")
        )

    def _require_scheduler(self) -> None:
        """Raise if the scheduler is gone at two checks: an ending context is briefly without it."""
        try:
            scheduler = self._ssc.sparkContext._jsc.sc().dagScheduler()
            dead = scheduler.eventProcessLoop().isActive() is False
        except Exception:  # another Spark's, or the JVM has ended: the run's own call reports it
            dead = False
        if dead and self._dead:
            raise SchedulerDied
        self._dead = dead

    def _standing(self) -> Any:
        """Return what waits, to compare with the next check; None where a task runs."""
        try:
            tracker = self._ssc.sparkContext.statusTracker()
            jobs = tuple(tracker.getActiveJobsIds())
            found = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
            stages = tuple(
                (one.stageId, one.numCompletedTasks, one.numActiveTasks) for one in found if one
            )
        except Exception:  # this check only helps: the run continues without it
            return None
        runs = any(active for _, _, active in stages)
        return (jobs, stages) if jobs and not runs else None
