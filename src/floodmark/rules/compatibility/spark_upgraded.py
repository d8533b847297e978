"""Finds a later Spark than wrote the checkpoint."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.rules.finding import Rule, Severity
from floodmark.rules.restarts.comparison import Comparison, version_of
from floodmark.rules.restarts.reason import Reason, Verdict, reason

RULE = Rule(
    "FM345",
    "spark-upgraded",
    Severity.ADVICE,
    finds="A later Spark than at the last start.",
    matters="A later Spark reads the files that earlier ones wrote, and formats of state stay as "
    "the checkpoint pins them. It may still put the columns of a key in another order: those of "
    "dropDuplicates, if there are five or more, from Spark 3 to Spark 4 (dedup-columns-changed).",
    restart="It starts. New settings come into the next offset entry with their old meaning.",
    instead="Nothing. There may be no way back: `floodmark backup` before the first start.",
)


def check(comparison: Comparison) -> Iterator[Reason]:
    last = comparison.last
    if last is None:
        return
    if version_of(comparison.new.spark_version) > version_of(last.spark_version):
        yield reason(
            RULE,
            Verdict.COMPATIBLE,
            f"Spark is {comparison.new.spark_version}, and was {last.spark_version}.",
            "the session",
        )
