"""Finds changed columns of a source."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.checkpoint.layout import SOURCES
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
    restart="The query starts. Files that were seen and not yet read are read with the new schema.",
    instead="Nothing, if the records that are still to come fit the new columns.",
)


_BY_PLACE = "csv"


def check(comparison: Comparison) -> Iterator[Reason]:
    for at, before, after in comparison.noted_sources():
        if before.kind != after.kind or before.schema_ddl == after.schema_ddl:
            continue
        what = f"Source {at} has the columns {after.schema_ddl}; it had {before.schema_ddl}."
        appended = after.schema_ddl.startswith(f"{before.schema_ddl},")
        if after.kind == _BY_PLACE and comparison.is_stateful and not appended:
            yield reason(
                RULE,
                Verdict.UNKNOWN,
                what,
                f"{SOURCES}/{at}",
                why="Spark reads the columns of a CSV file by position: under the new schema "
                "the same file gives other values, and Spark gives no warning.",
                do="If the files have changed in the same way: --accept source-columns-changed.",
                silent=True,
            )
            continue
        yield reason(RULE, Verdict.COMPATIBLE, what, f"{SOURCES}/{at}")
