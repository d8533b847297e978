"""`run --restart on-failure` of a script: in a new process, which begins with its first line.

A script cannot be entered in its middle, and what a failed query has left in it is unknown. So
the run executes its own command line again, as it does for pipelines whose JVM has died.
"""

from __future__ import annotations

import time

from floodmark.engine.app.supervised import Supervisor
from floodmark.engine.run.ending import stopped
from floodmark.engine.run.failure import Failure, FailureKind
from floodmark.engine.run.new_process import Carried, CarriedStream, NewJvmNeeded
from floodmark.engine.run.restarting import GiveUp, decide, may_pass
from floodmark.engine.run.runtime import RunOptions
from floodmark.engine.run.stream import PipelineReport
from floodmark.errors import FloodmarkError


def refused_for_now(error: FloodmarkError) -> Failure | None:
    """A start that was refused, as a failure that time may mend; None where it does not."""
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
    """What to raise: that a new process goes on, or that and why the run has ended."""
    before = request.carried.streams
    streams = {one.pipeline: _carried(one, before.get(one.pipeline)) for one in reports}
    # A batch that was committed begins the count anew.
    known = streams.get(name) or before.get(name) or _NOTHING
    failures = (*known.failures, failure)
    decision = decide(request.restart, failures)
    if supervisor.stop.asked and not isinstance(decision, GiveUp):
        decision = GiveUp("failed", for_good=False)
    if isinstance(decision, GiveUp):
        log, bisecting = request.log, request.bisecting
        return stopped(f"query {name}", checkpoint, failure, decision, log, bisecting)
    supervisor.view.say(name, f"{failure.batch_words} failed: {failure.cause}")
    supervisor.view.say(name, f"the script starts again in {decision.wait:g} s")
    until = time.monotonic() + decision.wait
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
    """A report counts what processes before this one did, too."""
    known = before or _NOTHING
    failures = known.failures if report.batches == known.batches else ()
    return CarriedStream(
        failures, report.restarts, report.batches, 0, report.rows, None, report.last_batch, None
    )
