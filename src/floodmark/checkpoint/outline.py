"""What a query is, as plain data: its sources, sink, plan and the state it would keep.

`engine/code/outline.py` draws it from new code; the rules compare it with what a checkpoint
holds. Nothing here knows Spark.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from floodmark.checkpoint.plan.tree import PlanTree

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
)
"""Settings that change what the same expression gives; an outline has them always."""
_LEGACY = ("spark.sql.legacy.", "spark.sql.ansi.")


def evaluating(conf: Iterable[str]) -> set[str]:
    """Of these settings, the ones that change what the same expression gives."""
    return {key for key in conf if key in EVALUATING or key.startswith(_LEGACY)}


@dataclass(frozen=True)
class SourceOutline:
    """One source, in the order of its offsets in the checkpoint."""

    kind: str
    """As format() names it: kafka, delta, csv, rate…"""
    options: Mapping[str, str]
    """Keys in lower case."""
    schema_ddl: str = ""
    name: str | None = None
    """Spark 4.2 and later: the name that the code gave it."""

    @property
    def place(self) -> str | None:
        """What it reads: topics, a path, a table."""
        for key in ("subscribe", "subscribepattern", "assign", "path", "table"):
            if key in self.options:
                return self.options[key]
        return None


@dataclass(frozen=True)
class FamilyOutline:
    """Keys and values of a store, or of one column family in it; schemas are Spark's JSON."""

    name: str
    key_json: str
    value_json: str
    encoding_json: str | None = None


@dataclass(frozen=True)
class OperatorOutline:
    """A stateful operator and what its state looks like."""

    operator: int
    name: str | None
    stores: Mapping[str, tuple[FamilyOutline, ...]]
    """Empty where no schema was written."""
    prefix_columns: int = 0
    properties_json: str = ""
    """Of transformWithState and later joins: variables, time mode, output mode."""


@dataclass(frozen=True)
class Outline:
    sources: tuple[SourceOutline, ...]
    sink: str
    sink_options: Mapping[str, str]
    """Keys in lower case."""
    output_mode: str
    trigger: str
    schema_json: str
    """Of the rows that the sink is given."""
    tree: PlanTree
    operators: tuple[OperatorOutline, ...]
    conf: Mapping[str, str]
    """What the session sets of spark.sql.*, and what it evaluates expressions with."""
    pinned: Mapping[str, str]
    """What the state was drawn with: the conf of the offset log that Spark wrote for it."""
    spark_version: str
