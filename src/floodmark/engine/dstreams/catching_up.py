"""Keeps a recovered context recoverable while it makes up for batches that it missed.

Spark names a checkpoint file after the newest batch that this start has planned, and restarts
from the newest name. The files of a context that works off old batches get old names: the next
restart passes them over and takes one from before, whose saved RDDs Spark has removed by then.
The writer is therefore told the newest name that is there.

Spark also notes the end of a batch late while it plans the missed ones: the file then says "up to
batch 5" and holds the state of batch 40. Spark would run 5 to 39 again, from a state that is gone,
and put out wrong sums for them. They were finished: the restart is told to go on after them.
"""

from __future__ import annotations

from typing import Any

from floodmark.engine.dstreams.jvm_graph import private_field, private_value


def write_under_newest_name(ssc: Any, newest_ms: int) -> None:
    """To be called on a recovered context before it starts."""
    scheduler = ssc._jssc.ssc().scheduler()
    generator = private_field(scheduler, "jobGenerator").get(scheduler)
    writer = private_value(ssc, generator, "checkpointWriter")
    private_field(writer, "latestCheckpointTime").set(
        writer, ssc._jvm.org.apache.spark.streaming.Time(newest_ms)
    )


def go_on_after_finished(ssc: Any, planned_ms: int) -> None:
    """Runs no finished batch again; batches that are pending run in any case."""
    saved = ssc._jssc.ssc().initialCheckpoint()
    private_field(saved, "checkpointTime").set(
        saved, ssc._jvm.org.apache.spark.streaming.Time(planned_ms)
    )
