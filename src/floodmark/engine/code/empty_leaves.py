"""Replaces the leaves of a plan by empty ones with the same columns and column ids."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from floodmark.checkpoint.conf_keys import SOURCE_EVOLUTION
from floodmark.engine.code.query import is_source, source_name
from floodmark.engine.spark.scala import sequence


def frame_of(session: Any, plan: Any) -> Any:
    from pyspark.sql import DataFrame

    jvm = session._jvm.org.apache.spark.sql
    classic = jvm.classic.Dataset if _is_class(jvm.classic.Dataset) else jvm.Dataset
    return DataFrame(classic.ofRows(session._jsparkSession, plan), session)


def _is_class(found: Any) -> bool:
    # py4j gives a package for a name that is no class; Spark 3.5 has no `classic`.
    return type(found).__name__ == "JavaClass"


def replace_leaves(node: Any, instead_of: Callable[[Any], Any]) -> Any:
    """Return the plan with other leaves, where `instead_of` returns one."""
    children = sequence(node.children())
    if not children:
        other = instead_of(node)
        return node if other is None else other
    others = [replace_leaves(child, instead_of) for child in children]
    if all(one is other for one, other in zip(children, others, strict=True)):
        return node
    return node.withNewChildren(scala_seq(others))


def scala_seq(items: list[Any]) -> Any:
    from pyspark import SparkContext

    context = SparkContext._active_spark_context
    assert context is not None
    listed = context._jvm.java.util.ArrayList()
    for item in items:
        listed.add(item)
    return context._jvm.PythonUtils.toSeq(listed)


class EmptyLeaves:
    """Empty leaves that replace others and have the same columns."""

    def __init__(self, session: Any, place: Path, files: int = 1) -> None:
        self._session = session
        self._place = place
        self._files = files
        self.folders: list[Path] = []
        """Folders of the streams, in the order in which Spark numbers sources."""
        self._made: list[tuple[Any, Any]] = []

    def instead_of(self, leaf: Any) -> Any:
        kind = str(leaf.getClass().getSimpleName())
        if not leaf.isStreaming():
            # A static table belongs to the user, and may be large.
            return as_leaf(self._session, leaf, self._no_rows(leaf)) if "Relation" in kind else None
        if not is_source(leaf):
            return None
        for one, other in self._made:
            if one.equals(leaf):
                return other
        other = as_leaf(self._session, leaf, self._stream(leaf))
        self._made.append((leaf, other))
        return other

    def _stream(self, leaf: Any) -> Any:
        folder = self._place / f"source-{len(self.folders)}"
        folder.mkdir(parents=True)
        self.folders.append(folder)
        for number in range(self._files):
            (folder / f"{number}.json").write_bytes(b"")
        reader = self._session.readStream.schema(schema_of(leaf))
        # Executors with disks of their own do not see the file; that also gives no rows.
        reader = reader.option("ignoreMissingFiles", True)
        reader = reader.option("columnNameOfCorruptRecord", "floodmark corrupt record")
        name = source_name(leaf)
        if name is not None and self._session.conf.get(SOURCE_EVOLUTION, "false") == "true":
            reader = reader.name(name)
        return reader.json(f"file://{folder}")

    def _no_rows(self, leaf: Any) -> Any:
        # Not a local relation: the optimizer would see that it is empty, and remove the join.
        return self._session.createDataFrame(
            self._session.sparkContext.emptyRDD(), schema_of(leaf), verifySchema=False
        )


def as_leaf(session: Any, leaf: Any, frame: Any) -> Any:
    """Return the frame under the leaf's own column ids, so that the plan above it still fits."""
    jvm = session._jvm
    expressions = jvm.org.apache.spark.sql.catalyst.expressions
    plan = frame._jdf.queryExecution().analyzed()
    columns = []
    for old, new in zip(sequence(leaf.output()), sequence(plan.output()), strict=True):
        # Files may hold nulls; a column that was not nullable must stay so.
        child = new if old.nullable() else expressions.KnownNotNull(new)
        metadata = jvm.scala.Option.apply(old.metadata())
        columns.append(
            expressions.Alias(
                child, old.name(), old.exprId(), old.qualifier(), metadata, scala_seq([])
            )
        )
    return jvm.org.apache.spark.sql.catalyst.plans.logical.Project(scala_seq(columns), plan)


def schema_of(leaf: Any) -> Any:
    from pyspark.sql.types import StructType

    return StructType.fromJson(json.loads(str(leaf.schema().asNullable().json())))
