"""Finds source names that the checkpoint does not know, and sources that lost their names."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.checkpoint.layout import OFFSETS
from floodmark.rules.finding import Rule, Severity
from floodmark.rules.restarts.comparison import Comparison
from floodmark.rules.restarts.reason import Reason, Verdict, reason
from floodmark.rules.restarts.source_moves import convert_command

RULE = Rule(
    "FM356",
    "source-names-unknown",
    Severity.ERROR,
    finds="Sources with names (`spark.readStream.name`) on a checkpoint that began without "
    "names, or sources without names on a checkpoint that knows them by name.",
    matters="A checkpoint knows its sources by place or by name, from its first batch on: its "
    "offset log and the folders of its sources depend on that.",
    restart="Spark 4.3 refuses names there: "
    "STREAMING_QUERY_EVOLUTION_ERROR.CANNOT_ENABLE_ON_EXISTING_CHECKPOINT. Spark 4.2 "
    "starts: a file source fails because its list is missing; Kafka's and Delta's go on "
    "without a warning.",
    instead="`floodmark convert CP NEW --name 0=orders` makes a checkpoint that knows its sources "
    "by name.",
)


def check(comparison: Comparison) -> Iterator[Reason]:
    new, checkpoint = comparison.new.sources, comparison.checkpoint
    where = f"{OFFSETS}/{checkpoint.latest_batch}"
    unnamed = [at for at, one in enumerate(new) if one.name is None]
    if comparison.knows_names() and unnamed:
        yield reason(
            RULE,
            Verdict.NEEDS_NEW_CHECKPOINT,
            f"The checkpoint knows its sources by name, but source {unnamed[0]} of the new code "
            "has no name.",
            where,
            why="Spark accepts no source without a name there: the query fails at its start.",
            do='Give the source its old name: spark.readStream.name("orders").',
        )
    if comparison.names_are_new():
        names = ", ".join(one.name for one in new if one.name is not None)
        yield reason(
            RULE,
            Verdict.NEEDS_MIGRATION,
            f"The new code names its sources ({names}), but the checkpoint knows them by place.",
            where,
            do=f"{convert_command(comparison)}\nThen start the new code on the new checkpoint.",
            migrate=None,
        )
