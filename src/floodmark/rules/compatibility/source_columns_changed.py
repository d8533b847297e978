"""Other columns of a source."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.rules.finding import Rule, Severity
from floodmark.rules.restarts.comparison import Comparison
from floodmark.rules.restarts.reason import Reason, Verdict, reason

RULE = Rule(
    "FM307",
    "source-columns-changed",
    Severity.ADVICE,
    finds="A source with another schema than at the last start.",
    matters="Spark keeps no schema of a source in the checkpoint; what depends on it is "
    "judged by the state and the output.",
    restart="It starts. Files that were seen and not yet read are read with the new schema.",
    instead="Nothing, if the records that are still to come fit the new columns.",
)


def check(comparison: Comparison) -> Iterator[Reason]:
    last = comparison.last
    if last is None or len(last.sources) != len(comparison.new.sources):
        return
    pairs = zip(last.sources, comparison.new.sources, strict=True)
    for at, (before, after) in enumerate(pairs):
        if before.kind == after.kind and before.schema_ddl != after.schema_ddl:
            yield reason(
                RULE,
                Verdict.COMPATIBLE,
                f"Source {at} has the columns {after.schema_ddl}; it had {before.schema_ddl}.",
                f"sources/{at}",
            )
