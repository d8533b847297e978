"""Keeps a recovered context recoverable while it makes up for batches that it missed.

Spark names a checkpoint file after the newest batch that this start has planned, and restarts
from the newest name. The files of a context that works off old batches get old names: the next
restart passes them over and takes one from before, whose saved RDDs Spark has removed by then.
The writer is therefore told the newest name that is there.
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
