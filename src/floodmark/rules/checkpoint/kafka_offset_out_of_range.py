"""Kafka offsets that the broker does not have, or does not have yet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from floodmark.checkpoint.evidence import Evidence
from floodmark.checkpoint.outside import Bounds
from floodmark.checkpoint.sources import SourceKind, SourceOffset, parse_kafka_offset
from floodmark.errors import MalformedFile
from floodmark.rules.finding import Finding, Rule, Severity

RULE = Rule(
    "FM146",
    "kafka-offset-out-of-range",
    Severity.ERROR,
    finds="With --sources: offsets that lie before what the broker still has or after its end, or "
    "a topic or partition that it has not.",
    matters="Retention removed records that the stream had not read, the topic was made anew, or "
    "this is another cluster.",
    restart="With failOnDataLoss the query fails at its first batch; without it, records are "
    "skipped or read again, silently.",
    instead="Bring the records back if another place has them, or point the source at its "
    "cluster. To go on with what is left: failOnDataLoss=false.",
)


def check(evidence: Evidence) -> Iterator[Finding]:
    batch = evidence.begins_after
    if evidence.outside is None or batch is None:
        return
    for source in evidence.positions.get(batch, ()):
        bounds = evidence.outside.kafka.get(source.id)
        if bounds is None or source.kind is not SourceKind.KAFKA or source.offset is None:
            continue
        for what in _wrong(source, bounds):
            yield RULE.finding(f"offsets/{batch}", f"Source {source.id}: {what}.")


def _wrong(source: SourceOffset, bounds: Mapping[str, Mapping[int, Bounds]]) -> Iterator[str]:
    try:
        needed = parse_kafka_offset(source.offset)
    except MalformedFile:
        return
    for topic, partitions in needed.items():
        there = bounds.get(topic, {})
        if not there:
            yield f"the broker has no topic {topic}"
            continue
        for partition, offset in sorted(partitions.items()):
            where = f"{topic}, partition {partition}"
            if partition not in there:
                yield f"the broker has no {where}"
                continue
            earliest, end = there[partition]
            if offset < earliest:
                yield (
                    f"{where} goes on at offset {offset}, and the broker's earliest is "
                    f"{earliest}: {earliest - offset:,} records are gone"
                )
            elif offset > end:
                yield f"{where} goes on at offset {offset}, and the broker ends at {end}"
