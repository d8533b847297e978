"""Finds a Spark that is earlier than the one that wrote the checkpoint."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.checkpoint.conf_keys import (
    DEDUP_KEY_ORDER,
    MERGE_VERSION,
    NULLABLE_OUTPUT,
    ROW_CHECKSUMS,
    STATE_ENCODING,
)
from floodmark.checkpoint.layout import OFFSETS
from floodmark.rules.finding import Rule, Severity
from floodmark.rules.restarts.comparison import Comparison
from floodmark.rules.restarts.reason import Reason, Verdict, reason
from floodmark.rules.restarts.spark_defaults import version_of

RULE = Rule(
    "FM346",
    "spark-downgraded",
    Severity.ERROR,
    finds="An earlier Spark than at the last start, or log versions and settings that "
    "this Spark does not know.",
    matters="An earlier Spark knows neither later log versions nor later formats of state.",
    restart="The query fails on an unknown log version; a setting it does not know is ignored, "
    "and the state may be misread.",
    instead="Run the Spark that wrote it, or go on with a new checkpoint of the earlier "
    "one: `floodmark upgrade CP NEW --without-state`.",
)


# Log version → the first Spark that reads it.
_OFFSETS = {1: (2, 1), 2: (4, 2)}
_COMMITS = {1: (2, 2), 2: (4, 0), 3: (4, 2)}
_SETTINGS = {
    (ROW_CHECKSUMS, "true"): (4, 2),
    (MERGE_VERSION, "2"): (4, 2),
    (STATE_ENCODING, "avro"): (4, 0),
    ("spark.sql.streaming.join.stateFormatVersion", "3"): (4, 1),
    ("spark.sql.streaming.join.stateFormatVersion", "4"): (4, 3),
    # Without it, dropDuplicates puts more than four columns of a key in another order.
    (DEDUP_KEY_ORDER, "true"): (4, 3),
    (NULLABLE_OUTPUT, "true"): (4, 3),
}


def check(comparison: Comparison) -> Iterator[Reason]:
    checkpoint, spark = comparison.checkpoint, comparison.new.spark_version
    now = version_of(spark)
    logs = (
        ("offset", _OFFSETS.get(checkpoint.offset_log_version or 1)),
        ("commit", _COMMITS.get(checkpoint.commit_log_version or 1)),
    )
    for name, first in logs:
        if first is not None and now < first:
            yield reason(
                RULE,
                Verdict.NEEDS_NEW_CHECKPOINT,
                f"Spark {spark} cannot read this {name} log; {first[0]}.{first[1]} is the first "
                "that can.",
                f"{name}s/{checkpoint.latest_batch}",
            )
    for (key, value), first in _SETTINGS.items():
        if comparison.is_stateful and checkpoint.conf.get(key) == value and now < first:
            yield reason(
                RULE,
                Verdict.NEEDS_NEW_CHECKPOINT,
                f"Spark {spark} does not know {key} = {value}, which the state was written with.",
                f"{OFFSETS}/{checkpoint.latest_batch}",
            )
    last = comparison.last
    if last is not None and now < version_of(last.spark_version):
        yield reason(
            RULE,
            Verdict.UNKNOWN,
            f"Spark is {spark}, and was {last.spark_version}.",
            "the session",
            silent=True,
            do="Use --rehearse to see whether this Spark reads it.",
        )
