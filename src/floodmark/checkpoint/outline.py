"""Describes a query as plain data: its sources, sink, plan and the state it would keep.

`engine/code/outline.py` makes it from new code; the rules compare it with what a checkpoint holds.
This module does not import Spark.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from floodmark.checkpoint.plan.tree import PlanTree
from floodmark.checkpoint.start_note import StartedQuery

PARTITIONED_BY, TABLE = "partitionby", "table"
"""Among the options of a sink: the columns of partitionBy(), and the name given to toTable()."""
ANSI = "spark.sql.ansi.enabled"
TIME_ZONE = "spark.sql.session.timeZone"
EVALUATING = (
    TIME_ZONE,
    ANSI,
    "spark.sql.caseSensitive",
    "spark.sql.mapKeyDedupPolicy",
    "spark.sql.timestampType",
    "spark.sql.decimalOperations.allowPrecisionLoss",
    "spark.sql.parser.escapedStringLiterals",
    "spark.sql.columnNameOfCorruptRecord",
    "spark.sql.jsonGenerator.ignoreNullFields",
    "spark.sql.json.enablePartialResults",
    "spark.sql.files.ignoreCorruptFiles",
    "spark.sql.files.ignoreMissingFiles",
    "spark.sql.sources.partitionColumnTypeInference.enabled",
    "spark.sql.csv.parser.columnPruning.enabled",
    "spark.sql.json.enableExactStringParsing",
    "spark.sql.parquet.datetimeRebaseModeInRead",
    "spark.sql.parquet.int96RebaseModeInRead",
    "spark.sql.parquet.int96TimestampConversion",
    "spark.sql.avro.datetimeRebaseModeInRead",
)
"""Settings that change the result of the same expression; an outline always has them."""
_LEGACY = ("spark.sql.legacy.", "spark.sql.ansi.")


def evaluating(conf: Iterable[str]) -> set[str]:
    """Return the settings in `conf` that change the result of the same expression."""
    return {key for key in conf if key in EVALUATING or key.startswith(_LEGACY)}


@dataclass(frozen=True)
class SourceOutline:
    """One source, in the order of its offsets in the checkpoint."""

    kind: str
    """Its name in format(): kafka, delta, csv, rate…"""
    options: Mapping[str, str]
    """Keys in lower case."""
    schema_ddl: str = ""
    name: str | None = None
    """The name that the code gave it (Spark 4.2 and later)."""

    @property
    def place(self) -> str | None:
        """What it reads: topics, a path or a table."""
        for key in ("subscribe", "subscribepattern", "assign", "path", "table"):
            if key in self.options:
                return self.options[key]
        return None


@dataclass(frozen=True)
class FamilyOutline:
    """The schemas of a store, or of one column family in it, as Spark's JSON."""

    name: str
    key_json: str
    value_json: str
    encoding_json: str | None = None


@dataclass(frozen=True)
class OperatorOutline:
    """A stateful operator and the shape of its state."""

    operator: int
    name: str | None
    stores: Mapping[str, tuple[FamilyOutline, ...]]
    """Empty if no schema was written."""
    prefix_columns: int = 0
    properties_json: str = ""
    """Properties of transformWithState and later joins: variables, time mode, output mode."""


@dataclass(frozen=True)
class Outline(StartedQuery[SourceOutline]):
    """A query as new code would start it."""

    tree: PlanTree
    operators: tuple[OperatorOutline, ...]
    conf: Mapping[str, str]
    """The session's spark.sql.* settings, and those that expressions are evaluated with."""
    pinned: Mapping[str, str]
    """The conf of the offset log that Spark wrote when it drew the state."""
    spark_version: str
