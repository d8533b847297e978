"""Restarts a script for `run --restart on-failure`: in a new process, from its first line.

A script cannot continue in its middle, and nobody knows what a failed query left in its
variables. So the run executes its own command line again, as for pipelines whose JVM has died.
"""

from __future__ import annotations

import time

from floodmark.engine.app.supervised import Supervisor
from floodmark.engine.run.ending import stopped
from floodmark.engine.run.failure import Failure, FailureKind
from floodmark.engine.run.new_process import Carried, CarriedStream, NewJvmNeeded
from floodmark.engine.run.options import RunOptions
from floodmark.engine.run.restart_policy import GiveUp, decide, may_pass
from floodmark.engine.run.stream import PipelineReport
from floodmark.errors import FloodmarkError


def refused_for_now(error: FloodmarkError) -> Failure | None:
    """Return a refused start as a failure that waiting may resolve; None where it cannot."""
    if not may_pass(error):
        return None
    why = "" if not error.why else f": {error.why.splitlines()[0]}"
    return Failure(None, (), f"{error.what}{why}", FailureKind.OUTAGE)


def after_failure(
    name: str,
    checkpoint: str,
    failure: Failure,
    supervisor: Supervisor,
    reports: tuple[PipelineReport, ...],
    request: RunOptions,
) -> FloodmarkError:
    """Return the error to raise: a new process goes on, or the run has ended, and why."""
    before = request.carried.streams
    streams = {one.pipeline: _carried(one, before.get(one.pipeline)) for one in reports}
    # A committed batch resets the count.
    known = streams.get(name) or before.get(name) or _NOTHING
    failures = (*known.failures, failure)
    decision = decide(request.restart, failures)
    if supervisor.stop.asked and not isinstance(decision, GiveUp):
        decision = GiveUp("failed", for_good=False)
    if isinstance(decision, GiveUp):
        log, bisecting = request.log, request.bisecting
        return stopped(f"query {name}", checkpoint, failure, decision, log, bisecting)
    supervisor.view.say(name, f"{failure.batch_words} failed: {failure.cause}")
    supervisor.view.say(name, f"the script starts again in {decision:g} s")
    until = time.monotonic() + decision
    while time.monotonic() < until and not supervisor.stop.asked:
        supervisor.stop.wait(0.2)
    streams[name] = CarriedStream(
        failures,
        known.restarts + 1,
        known.batches,
        0,
        known.rows,
        known.first_batch,
        known.last_batch,
        None,
    )
    log_file = str(request.log) if request.log is not None else None
    return NewJvmNeeded(failure.cause, Carried(streams, log_file))


_NOTHING = CarriedStream((), 0, 0, 0, 0, None, None, None)


def _carried(report: PipelineReport, before: CarriedStream | None) -> CarriedStream:
    """Return the counts to pass on; a report also counts earlier processes."""
    known = before or _NOTHING
    failures = known.failures if report.batches == known.batches else ()
    return CarriedStream(
        failures, report.restarts, report.batches, 0, report.rows, None, report.last_batch, None
    )
