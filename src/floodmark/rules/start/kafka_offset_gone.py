"""Finds Kafka records that retention removed before the stream read them."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.connectors.kafka.reach import KafkaTrouble
from floodmark.rules.finding import Finding, Rule, Severity
from floodmark.rules.start_inputs.situation import Situation
from floodmark.rules.start_inputs.topic import troubles

RULE = Rule(
    "FM406",
    "kafka-offset-gone",
    Severity.ERROR,
    finds="Offsets of the checkpoint that lie before the earliest that Kafka still has.",
    matters="Retention removed records that the stream had not read.",
    restart="Spark fails on its first batch, or silently skips the records if failOnDataLoss is "
    "false.",
    instead="Bring the records back if another place has them. To go on with what is left, set "
    '.option("failOnDataLoss", "false") as well.',
)


def check(situation: Situation) -> Iterator[Finding]:
    for source, found in troubles(situation, KafkaTrouble.GONE):
        skips = source.options.get("failondataloss", "true").lower() == "false"
        then = (
            "skips them silently (failOnDataLoss is false)" if skips else "fails on its first batch"
        )
        yield RULE.finding(
            situation.location,
            f"Kafka no longer has {found.topic}, partition {found.partition} from offset "
            f"{found.offset} on: its earliest is {found.earliest}, so {found.records:,} "
            "records are gone",
            why=f"Retention removed them before the stream had read them. Spark {then}.",
        )
