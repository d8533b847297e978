"""What new code is, drawn from Spark without its data and without its checkpoint.

The writer's plan is taken, each of its sources is replaced by one that gives no rows, its
sink by one that keeps nothing, and one batch is run on a checkpoint of its own. Spark then
writes down what state the query would keep: operators, their names and schemas.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from floodmark.checkpoint.model import SHUFFLE_PARTITIONS
from floodmark.checkpoint.outline import OperatorOutline, Outline, SourceOutline
from floodmark.engine.plan_nodes import plan_nodes, sequence
from floodmark.engine.query import Query, jvm_field, read_query
from floodmark.errors import FloodmarkError
from floodmark.storage.files import open_files
from floodmark.storage.load import load
from floodmark.storage.state import operator_outline

CHECKPOINT = "checkpoint"
_ENOUGH_SECONDS = 600
# One partition shows a schema as well as two hundred; the file names do not matter to it.
_PLAIN = {
    SHUFFLE_PARTITIONS: "1",
    "spark.sql.streaming.stateStore.checkpointFormatVersion": "1",
}
# The sources and the sink that stand in for the query's own have no names.
_UNNAMED = {
    "spark.sql.streaming.queryEvolution.enableSourceEvolution": "false",
    "spark.sql.streaming.queryEvolution.enableSinkEvolution": "false",
}


class CannotOutline(FloodmarkError):
    """Spark does not take the new code, or not without its data."""

    status = 2


def outline(
    writer: Any, conf: Mapping[str, str] | None = None, folder: str | Path | None = None
) -> Outline:
    """What a DataStreamWriter is about to be.

    `conf` is what a checkpoint pins: it decides formats of the state. With `folder` (on this
    machine, empty) the checkpoint that Spark drew stays, as `folder/checkpoint`.
    """
    query = read_query(writer)
    with _place(folder) as place:
        session = clone_session(writer._spark, {**_PLAIN, **(conf or {}), **_UNNAMED})
        try:
            drawn = place / CHECKPOINT
            _run(session, _without_data(session, writer, place), query, drawn)
            files = open_files(str(drawn))
            checkpoint = load(files)
            operators = tuple(
                operator_outline(files, checkpoint, one.operator)
                for one in checkpoint.state_operators
            )
            return described(writer, query, operators, checkpoint.conf)
        finally:
            for running in session.streams.active:
                running.stop()


def described(
    writer: Any,
    query: Query,
    operators: tuple[OperatorOutline, ...] = (),
    pinned: Mapping[str, str] | None = None,
) -> Outline:
    """What the plan alone tells; nothing is run for it."""
    plan = jvm_field(writer._jwrite, "ds").queryExecution().analyzed()
    return Outline(
        tuple(
            SourceOutline(source.kind, source.options, source.schema_ddl, source.name)
            for source in query.sources
        ),
        query.sink,
        query.sink_options,
        query.output_mode,
        query.trigger,
        query.schema_json,
        plan_nodes(plan),
        operators,
        sql_conf(writer._spark),
        pinned or {},
        str(writer._spark.version),
        query.plan,
    )


def sql_conf(spark: Any) -> dict[str, str]:
    """What was set of spark.sql.*, beside the defaults."""
    pairs = spark._jsparkSession.sessionState().conf().getAllConfs().iterator()
    found: dict[str, str] = {}
    while pairs.hasNext():
        pair = pairs.next()
        key = str(pair._1())
        if key.startswith("spark.sql."):
            found[key] = str(pair._2())
    return found


@contextlib.contextmanager
def _place(folder: str | Path | None) -> Iterator[Path]:
    if folder is not None:
        yield Path(folder).resolve()
        return
    with tempfile.TemporaryDirectory(
        prefix="floodmark-outline-", ignore_cleanup_errors=True
    ) as made:
        yield Path(made)


def clone_session(spark: Any, conf: Mapping[str, str]) -> Any:
    """The same settings, functions and views; what is set in it does not show outside."""
    from pyspark.sql import SparkSession

    session = SparkSession(spark.sparkContext, spark._jsparkSession.cloneSession())
    for key, value in conf.items():
        # A newer Spark's pin, or a static one, has no meaning to this session.
        if session.conf.isModifiable(key):
            session.conf.set(key, value)
    return session


def _without_data(session: Any, writer: Any, place: Path) -> Any:
    """The writer's rows, from sources that have none."""
    plan = jvm_field(writer._jwrite, "ds").queryExecution().analyzed()
    empty = _Empty(session, place)
    return frame_of(session, replace_leaves(plan, empty.instead_of))


def frame_of(session: Any, plan: Any) -> Any:
    from pyspark.sql import DataFrame

    jvm = session._jvm.org.apache.spark.sql
    classic = jvm.classic.Dataset if _is_class(jvm.classic.Dataset) else jvm.Dataset
    return DataFrame(classic.ofRows(session._jsparkSession, plan), session)


def _is_class(found: Any) -> bool:
    # py4j gives a package for a name that is no class; Spark 3.5 has no `classic`.
    return type(found).__name__ == "JavaClass"


def replace_leaves(node: Any, instead_of: Any) -> Any:
    """The plan with other leaves, where `instead_of` gives any."""
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


class _Empty:
    """Leaves without rows in the place of others, with the same columns."""

    def __init__(self, session: Any, place: Path) -> None:
        self._session = session
        self._place = place
        self._made: list[tuple[Any, Any]] = []

    def instead_of(self, leaf: Any) -> Any:
        kind = str(leaf.getClass().getSimpleName())
        if not leaf.isStreaming():
            # A table that a stream is joined with may be large, and is the user's.
            return self._as(leaf, self._no_rows(leaf)) if "Relation" in kind else None
        for one, other in self._made:
            if one.equals(leaf):
                return other
        other = self._as(leaf, self._stream(leaf))
        self._made.append((leaf, other))
        return other

    def _stream(self, leaf: Any) -> Any:
        folder = self._place / f"source-{len(self._made)}"
        folder.mkdir(parents=True)
        (folder / "nothing.json").write_bytes(b"")
        reader = self._session.readStream.schema(_schema(leaf))
        # Where executors have disks of their own, the file is missing: no rows all the same.
        reader = reader.option("ignoreMissingFiles", True)
        reader = reader.option("columnNameOfCorruptRecord", "floodmark corrupt record")
        return reader.json(f"file://{folder}")

    def _no_rows(self, leaf: Any) -> Any:
        # Not a local relation: the optimizer would see that it is empty, and leave out the join.
        return self._session.createDataFrame(
            self._session.sparkContext.emptyRDD(), _schema(leaf), verifySchema=False
        )

    def _as(self, leaf: Any, frame: Any) -> Any:
        """The frame under the leaf's own column ids: what stands above it goes on to fit."""
        jvm = self._session._jvm
        expressions = jvm.org.apache.spark.sql.catalyst.expressions
        plan = frame._jdf.queryExecution().analyzed()
        columns = []
        for old, new in zip(sequence(leaf.output()), sequence(plan.output()), strict=True):
            # Files may hold nulls; a source that says it has none must go on to say so.
            child = new if old.nullable() else expressions.KnownNotNull(new)
            metadata = jvm.scala.Option.apply(old.metadata())
            columns.append(
                expressions.Alias(
                    child, old.name(), old.exprId(), old.qualifier(), metadata, scala_seq([])
                )
            )
        return jvm.org.apache.spark.sql.catalyst.plans.logical.Project(scala_seq(columns), plan)


def _schema(leaf: Any) -> Any:
    import json

    from pyspark.sql.types import StructType

    return StructType.fromJson(json.loads(str(leaf.schema().asNullable().json())))


def _run(session: Any, frame: Any, query: Query, checkpoint: Path) -> None:
    from pyspark.errors import PySparkException

    writer = frame.writeStream.format("noop").outputMode(query.output_mode.lower())
    writer = writer.option("checkpointLocation", f"file://{checkpoint}").trigger(once=True)
    try:
        started = writer.start()
        ended = started.awaitTermination(_ENOUGH_SECONDS)
    except PySparkException as error:
        raise CannotOutline(
            "Spark refuses the new code",
            _sentence(error),
            "Correct the code: it would not start with a new checkpoint either.",
        ) from error
    if not ended:
        started.stop()
        raise CannotOutline("Spark did not plan the new code in ten minutes")


def _sentence(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    useful = [line for line in lines if not line.startswith(("An error occurred", "at ", "JVM"))]
    return (useful or lines or [type(error).__name__])[0].lstrip(": ")
