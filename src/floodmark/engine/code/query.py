"""Reads what a writer is about to start: its sources, its sink and its options.

PySpark keeps none of this in Python, so the module asks the JVM's writer and its analysed
plan. It starts nothing and writes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any

from floodmark.checkpoint.outline import ANSI, EVALUATING, PARTITIONED_BY, TABLE, TIME_ZONE
from floodmark.checkpoint.plan.tree import PlanTree
from floodmark.checkpoint.start_note import StartedQuery
from floodmark.connectors.files.offset import FILE_SOURCES
from floodmark.engine.code.plan import read_tree
from floodmark.engine.spark.scala import jvm_field, scala_map, sequence
from floodmark.errors import WrongUse

TABLE_GIVEN = "_floodmark_table"
"""On a writer: the name that toTable() was given, which Spark keeps nowhere before the start."""


@dataclass(frozen=True)
class Source:
    """One source of the plan, in the order of its offsets in the checkpoint."""

    kind: str
    """The name in format(): kafka, delta, csv, rate, socket…"""
    options: Mapping[str, str]
    """The source's options; keys are in lower case, as Spark ignores their case."""
    description: str
    schema_ddl: str = ""
    name: str | None = None
    """The name that the code gave it (Spark 4.2 and later)."""

    @property
    def path(self) -> str | None:
        return self.options.get("path")


@dataclass(frozen=True)
class Query(StartedQuery[Source]):
    name: str | None
    tree: PlanTree
    table: str | None = None
    """Of toTable()."""
    partitioned_by: tuple[str, ...] = ()

    @property
    def sink_told(self) -> dict[str, str]:
        """The sink's options, and what a writer is told in other ways; keys in lower case."""
        told = {**self.sink_options, PARTITIONED_BY: ",".join(self.partitioned_by)}
        return told if self.table is None else {**told, TABLE: self.table}


def is_writer(value: Any) -> bool:
    """Whether this is a DataStreamWriter of the classic API; Spark Connect's has no JVM writer."""
    return type(value).__name__ == "DataStreamWriter" and hasattr(value, "_jwrite")


def is_remote_writer(value: Any) -> bool:
    """Whether this is a DataStreamWriter of Spark Connect."""
    return type(value).__module__ == "pyspark.sql.connect.streaming.readwriter"


def require_writer(value: Any, origin: str) -> None:
    if is_writer(value):
        return
    kind = type(value).__name__
    do = "Return orders.writeStream.format(…).option(…), without .start()."
    why = "The runtime sets its checkpoint and starts it."
    if kind == "StreamingQuery":
        why = "The query is already started, so Floodmark cannot check it before its start."
    elif kind == "DataFrame":
        do = "Add .writeStream.format(…) to it, and return that."
    elif kind == "DataStreamWriter":
        why = "It belongs to Spark Connect, which gives no access to the query's plan."
        do = "Use a session of the classic API, or start it yourself: floodmark.start(writer, CP)."
    elif value is None:
        do = "Is a return missing? " + do
    raise WrongUse(f"{origin} gives {_article(kind)}, not a DataStreamWriter", why, do)


def _article(kind: str) -> str:
    return "nothing" if kind == "NoneType" else f"a {kind}"


def read_query(writer: Any) -> Query:
    jvm_writer = writer._jwrite
    options = scala_map(jvm_field(jvm_writer, "extraOptions"))
    plan = jvm_field(jvm_writer, "ds").queryExecution().analyzed()
    schema = plan.schema().json()
    kind = str(jvm_field(jvm_writer, "source") or "")
    return Query(
        _sources(plan),
        "foreachBatch" if jvm_field(jvm_writer, "foreachBatchWriter") is not None else kind,
        options,
        str(jvm_field(jvm_writer, "outputMode").toString()),
        str(jvm_field(jvm_writer, "trigger").toString()),
        str(schema),
        options.get("queryname"),
        read_tree(writer._spark, plan),
        getattr(writer, TABLE_GIVEN, None),
        _partitioned_by(jvm_writer),
    )


def _partitioned_by(jvm_writer: Any) -> tuple[str, ...]:
    columns = jvm_field(jvm_writer, "partitioningColumns")
    return tuple(map(str, sequence(columns.get()))) if columns.isDefined() else ()


def read_sources(writer: Any) -> tuple[Source, ...]:
    """Read the sources alone, in the order of their offsets, with the code's options."""
    return _sources(jvm_field(writer._jwrite, "ds").queryExecution().analyzed())


def _sources(plan: Any) -> tuple[Source, ...]:
    # A DataFrame used twice stays twice: so does its offset in the checkpoint.
    return tuple(_source(leaf) for leaf in source_leaves(plan))


def source_leaves(plan: Any) -> list[Any]:
    """Return the plan's leaves that are sources of a stream."""
    return [leaf for leaf in sequence(plan.collectLeaves()) if is_source(leaf)]


def is_source(leaf: Any) -> bool:
    """Whether a leaf is a stream's source; the use of a common table expression is no source."""
    return bool(leaf.isStreaming()) and leaf.getClass().getSimpleName() != "CTERelationRef"


def source_folders(writer: Any) -> tuple[str, ...]:
    """Return the folder of each source below sources/.

    A stream that is read twice has two places in the offsets, but one folder.
    """
    plan = jvm_field(writer._jwrite, "ds").queryExecution().analyzed()
    seen: list[tuple[Any, str]] = []
    folders = []
    numbers = count()
    for leaf in source_leaves(plan):
        folder = next((mine for other, mine in seen if other.equals(leaf)), None)
        if folder is None:
            folder = source_name(leaf) or str(next(numbers))
            seen.append((leaf, folder))
        folders.append(folder)
    return tuple(folders)


def _source(leaf: Any) -> Source:
    schema = str(leaf.schema().toDDL())
    if leaf.getClass().getSimpleName() == "StreamingRelation":
        source = leaf.dataSource()
        return Source(
            _short_name(str(source.className())),
            scala_map(source.options()),
            str(leaf.toString()),
            schema,
            source_name(leaf),
        )
    if leaf.getClass().getSimpleName() == "StreamingRelationV2":
        options = dict(leaf.extraOptions().asCaseSensitiveMap())
        return Source(
            _short_name(str(leaf.sourceName())),
            {str(key).lower(): str(value) for key, value in options.items()},
            str(leaf.toString()),
            schema,
            source_name(leaf),
        )
    # A memory stream and other test sources are in the plan themselves.
    return Source(leaf.getClass().getSimpleName().lower(), {}, str(leaf.toString()), schema)


def source_name(leaf: Any) -> str | None:
    """Return the name that the code gave a source, if it gave one."""
    from py4j.protocol import Py4JError

    try:
        name = leaf.sourceIdentifyingName().toUserProvided()
    except (Py4JError, TypeError):  # before 4.2 sources have no names
        return None
    return str(name.get().name()) if name.isDefined() else None


def _short_name(name: str) -> str:
    """Return `csv` for org.apache.spark.sql.execution.datasources.csv.CSVFileFormat."""
    lowered = name.lower()
    if "." not in lowered:
        return lowered
    for kind in ("kafka", "eventhubs", "delta", *FILE_SOURCES):
        if kind in lowered.rsplit(".", 1)[1]:
            return kind
    return lowered


def sql_conf(spark: Any, of_old_code: bool = False) -> dict[str, str]:
    """Return the settings of spark.sql.* that were set, and those that change how expressions run.

    The time zone and ANSI mode count even where nobody sets them: the machine and the Spark release
    decide them. `of_old_code`: this Spark runs old code now; its ANSI default is not the old one.
    """
    pairs = spark._jsparkSession.sessionState().conf().getAllConfs().iterator()
    found: dict[str, str] = {}
    while pairs.hasNext():
        pair = pairs.next()
        key = str(pair._1())
        if key.startswith("spark.sql."):
            found[key] = str(pair._2())
    for key in EVALUATING:
        value = spark.conf.get(key, None)
        if value is not None:
            found[key] = str(value)
    for key in (TIME_ZONE,) if of_old_code else (TIME_ZONE, ANSI):
        found[key] = str(spark.conf.get(key))
    return found
