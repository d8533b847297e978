"""Stops a query after its running batch.

Spark's own stop() interrupts the batch, which a restart then runs again. After each batch Spark
also checks whether the query is still active. Setting the query inactive ends it there, between
two batches.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from typing import Any

from floodmark.engine.spark.scala import jvm_field
from floodmark.errors import FloodmarkError

_POLL_SECONDS = 0.02
# Spark 4.2 interrupts a batch that should end while it is still being planned, and the
# next start runs it again: so wait until the batch runs.
_PLANNED_AFTER_SECONDS = 0.5
_PATIENCE_SECONDS = 10.0
# An interrupted batch ends within moments, unless Python code holds it.
_INTERRUPTED_WITHIN_SECONDS = 10.0


def finish(query: Any, hurry: Callable[[], bool]) -> bool:
    """End the query after its running batch, or at once when `hurry` returns true.

    Returns False where the batch goes on in spite of that: nothing interrupts Python code that a
    foreachBatch calls, and Spark's stop() waits for it forever.
    """
    began = time.monotonic()
    since: dict[int, float] = {}
    while not hurry() and time.monotonic() - began < _PATIENCE_SECONDS:
        if not _is_planning(query, since):
            break
        time.sleep(_POLL_SECONDS)
    if not hurry() and query.isActive and _told_to_end(query):
        while not hurry() and bool(query._jsq.status().isTriggerActive()):
            time.sleep(_POLL_SECONDS)
    # This wakes a query that waits for its next trigger; an ended query ignores it.
    stopping = threading.Thread(target=_stop, args=(query,), daemon=True)
    stopping.start()
    while not hurry():
        stopping.join(_POLL_SECONDS)
        if not stopping.is_alive():
            return True
    stopping.join(_INTERRUPTED_WITHIN_SECONDS)
    return not stopping.is_alive()


def _stop(query: Any) -> None:
    # The JVM may end meanwhile; the query itself says how it ended.
    with contextlib.suppress(Exception):
        query.stop()


def runs(query: Any) -> bool:
    """Whether the query does anything: a query that should end still finishes its batch."""
    return bool(query.isActive) or bool(query._jsq.status().isTriggerActive())


def _is_planning(query: Any, since: dict[int, float]) -> bool:
    """Whether a trigger runs without its batch; `since` is when each batch was first seen."""
    if not query.isActive or not query._jsq.status().isTriggerActive():
        return False
    batch = _unfinished_batch(query)
    if batch is None:
        return True
    planned = since.setdefault(batch, time.monotonic())
    return not _has_a_job(query) and time.monotonic() - planned < _PLANNED_AFTER_SECONDS


def _unfinished_batch(query: Any) -> int | None:
    """Return the batch that has a plan but no report yet."""
    execution = query._jsq.streamingQuery().lastExecution()
    report = query._jsq.lastProgress()
    batch = -1 if execution is None else int(execution.currentBatchId())
    reported = -1 if report is None else int(report.batchId())
    return batch if batch > reported else None


def _has_a_job(query: Any) -> bool:
    tracker = query._jsq.sparkSession().sparkContext().statusTracker()
    jobs = list(tracker.getJobIdsForGroup(str(query.runId)))
    info = tracker.getJobInfo(max(jobs)) if jobs else None
    return info is not None and info.isDefined() and str(info.get().status()) == "RUNNING"


def _told_to_end(query: Any) -> bool:
    from py4j.protocol import Py4JError

    try:
        execution = query._jsq.streamingQuery()
        package = str(jvm_field(execution, "state").get().getClass().getPackage().getName())
        loader = execution.getClass().getClassLoader()
        ended = loader.loadClass(f"{package}.TERMINATED$").getField("MODULE$").get(None)
        jvm_field(execution, "state").set(ended)
    except (Py4JError, FloodmarkError):
        return False
    return True
