"""Keeps a recovered context recoverable while it runs the batches that it missed.

Spark names a checkpoint file after the newest batch that this start has planned, and restarts
from the file with the newest name. While a context runs old batches, its files get old names. The
next restart ignores them and takes an earlier file, whose saved RDDs Spark has removed by then.
So the writer uses the newest name that exists.

While Spark plans the missed batches, it also notes finished batches late: a file may say "up to
batch 5" and hold the state of batch 40. Spark would run batches 5 to 39 again, from a state that is
gone, and write wrong sums for them. They were finished, so the restart continues after them.
"""

from __future__ import annotations

from typing import Any

from floodmark.engine.dstreams.jvm_graph import private_field, private_value


def write_under_newest_name(ssc: Any, newest_ms: int) -> None:
    """Set the newest name on a recovered context, before it starts."""
    scheduler = ssc._jssc.ssc().scheduler()
    generator = private_field(scheduler, "jobGenerator").get(scheduler)
    writer = private_value(ssc, generator, "checkpointWriter")
    private_field(writer, "latestCheckpointTime").set(
        writer, ssc._jvm.org.apache.spark.streaming.Time(newest_ms)
    )


def go_on_after_finished(ssc: Any, planned_ms: int) -> None:
    """Run no finished batch again; pending batches run in any case."""
    saved = ssc._jssc.ssc().initialCheckpoint()
    private_field(saved, "checkpointTime").set(
        saved, ssc._jvm.org.apache.spark.streaming.Time(planned_ms)
    )
