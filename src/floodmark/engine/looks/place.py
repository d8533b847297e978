"""A checkpoint on one machine's disk, for a query that runs on many."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.engine.look import Objection, Situation

LOCAL = "local-checkpoint-on-cluster"
NAMES = (LOCAL,)


def judge(situation: Situation) -> Iterator[Objection]:
    master = str(situation.spark.sparkContext.master)
    if situation.location.startswith("file:") and not master.startswith("local"):
        yield Objection(
            LOCAL,
            f"the checkpoint {situation.location} lies on a local disk, and the master is {master}",
            "Each executor would write its state to its own disk, and a driver that starts on "
            "another machine would find no checkpoint.",
            "Use storage that all machines reach: hdfs://, s3a://, abfss://, gs://. A disk that "
            "is mounted on all of them can be allowed.",
        )
