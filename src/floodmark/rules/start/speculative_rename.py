"""Finds DStreams that save state to an object store while tasks are run twice."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.rules.finding import Finding, Rule, Severity
from floodmark.rules.start_inputs.situation import Situation

RULE = Rule(
    "FM412",
    "speculative-rename",
    Severity.ERROR,
    finds="DStreams with a checkpoint on S3A or ABFS and spark.speculation=true.",
    matters="Spark saves each part of an RDD under a temporary name and renames it. With "
    "speculation two attempts do so for one part; on these stores a rename does not replace "
    "the file of the other attempt.",
    restart="A batch fails, or a part of the state is lost (apache/spark pull 57976).",
    instead="spark.speculation=false, or a checkpoint on HDFS.",
)
_BY_COPYING = ("s3a:", "s3n:", "s3:", "abfs:", "abfss:", "wasb:", "wasbs:")


def check(situation: Situation) -> Iterator[Finding]:
    if situation.speculates and situation.location.startswith(_BY_COPYING):
        yield RULE.finding(
            situation.location,
            f"spark.speculation is on, and Spark renames while it saves RDDs to "
            f"{situation.location}",
            do="Give --conf spark.speculation=false, or a checkpoint on HDFS.",
        )
