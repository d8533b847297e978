"""Finds a Spark that is later than the one that wrote the checkpoint."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.rules.finding import Rule, Severity
from floodmark.rules.restarts.comparison import Comparison
from floodmark.rules.restarts.reason import Reason, Verdict, reason
from floodmark.rules.restarts.spark_defaults import version_of, version_words

RULE = Rule(
    "FM345",
    "spark-upgraded",
    Severity.ADVICE,
    finds="A later Spark than at the last start, or than the one that planned the newest batch.",
    matters="A later Spark reads the files that earlier ones wrote, and formats of state stay as "
    "the checkpoint pins them. It may still put the columns of a key in another order: those of "
    "dropDuplicates, if there are five or more, from Spark 3 to Spark 4 (dedup-columns-changed). "
    "From 3.5 to 4.0 some functions give something else: ANSI mode is on by default "
    "(evaluation-settings-changed); -0.0 as a map's key becomes 0.0 "
    "(spark.sql.legacy.disableMapKeyNormalization); encode and decode refuse other charsets and "
    "characters that do not fit (spark.sql.legacy.javaCharsets, codingErrorAction); a timestamp "
    "that overflows a byte, short or int becomes null. From 4.0 to 4.1 a Parquet struct whose "
    "fields are all missing is no longer null "
    "(spark.sql.legacy.parquet.returnNullStructIfAllFieldsMissing).",
    restart="The query starts. Spark writes new settings into the next offset entry, with their "
    "old meaning.",
    instead="Nothing. There may be no way back: `floodmark backup` before the first start.",
)


def check(comparison: Comparison) -> Iterator[Reason]:
    now, before = comparison.new.spark_version, comparison.planned_by
    if before is None or version_of(now) <= before:
        return
    last = comparison.last
    known = last is not None and version_of(last.spark_version) == before
    was = last.spark_version if last is not None and known else version_words(before)
    yield reason(RULE, Verdict.COMPATIBLE, f"Spark is {now}, and was {was}.", "the session")
