"""Notices that Spark runs nothing more, though batches wait: it raises no error then.

A StackOverflowError is no exception to Spark's threads: the one that plans tasks ends, or the
message that would have started them is lost, and the batch's job waits for ever. A start that makes
up for many batches can come to that: Spark plans them all before the first has saved its state, so
the partitions of the last one hold those of all before it, however often the state is saved.
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
    """The thread that plans Spark's tasks has ended, and its JVM goes on."""

    def __init__(self) -> None:
        super().__init__(
            "Spark's dag-scheduler-event-loop has ended, and no job can run any more. "
            + _ADVICE.format("")
        )


class Standstill:
    """Asked at each turn of a run's loop; it looks at Spark every ten seconds."""

    def __init__(self, ssc: Any, clock: Callable[[], float] = time.monotonic) -> None:
        self._ssc = ssc
        self._clock = clock
        self._looked = self._since = clock()
        self._seen: Any = None
        self._dead = self._said = False

    def words(self) -> str | None:
        """What is to be said of a standstill, once; raises SchedulerDied."""
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
            f"Spark has no executor that is free, or it stands still. "
            + _ADVICE.format("stop this run (SIGTERM, twice) and ")
        )

    def _require_scheduler(self) -> None:
        """Raises where it is gone at two looks: a context that ends has a moment without it."""
        try:
            scheduler = self._ssc.sparkContext._jsc.sc().dagScheduler()
            dead = scheduler.eventProcessLoop().isActive() is False
        except Exception:  # another Spark's, or a JVM that is gone: the run's own call says it
            dead = False
        if dead and self._dead:
            raise SchedulerDied
        self._dead = dead

    def _standing(self) -> Any:
        """What stands still, to be compared with the next look; None where a task runs."""
        try:
            tracker = self._ssc.sparkContext.statusTracker()
            jobs = tuple(tracker.getActiveJobsIds())
            found = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
            stages = tuple(
                (one.stageId, one.numCompletedTasks, one.numActiveTasks) for one in found if one
            )
        except Exception:  # it only helps: the run goes on without it
            return None
        runs = any(active for _, _, active in stages)
        return (jobs, stages) if jobs and not runs else None
