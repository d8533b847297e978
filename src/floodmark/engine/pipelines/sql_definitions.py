"""Reads the flows that a declarative pipeline defines in SQL, with Spark's own parser.

The module knows the statements that `spark-pipelines` knows (SqlGraphRegistrationContext). SET
and USE apply to the following statements of the same file. Nothing is created: a flow's query
becomes a DataFrame.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from floodmark.engine.pipelines.definitions import (
    VIEW,
    Definitions,
    FlowDefinition,
    OutputDefinition,
)
from floodmark.engine.run.failure import sentence_of
from floodmark.errors import WrongUse

_CORRECT = "Correct it: the pipeline would not start either."


def define_sql(spark: Any, file: Path, text: str, found: Definitions) -> None:
    """Add the definitions of one file."""
    _SqlFile(spark, file, found).define(text)


@dataclass
class _SqlFile:
    spark: Any
    file: Path
    found: Definitions
    conf: dict[str, str] = field(default_factory=dict)
    catalog: str | None = None
    database: str | None = None

    def define(self, text: str) -> None:
        from py4j.protocol import Py4JJavaError
        from pyspark.errors import PySparkException

        self.catalog = self.found.spec.catalog or self.spark.catalog.currentCatalog()
        self.database = self.found.spec.database or self.spark.catalog.currentDatabase()
        graph = self.spark._jvm.org.apache.spark.sql.pipelines.graph
        line = None
        try:
            split = graph.SqlGraphRegistrationContext.splitSqlFileIntoQueries
            for one in _each(split(self.spark._jsparkSession, text, str(self.file))):
                line = one.queryOrigin().line().get()
                self._define(one.plan(), line)
        except (PySparkException, Py4JJavaError) as error:
            where = f"{self.file}" if line is None else f"{self.file}, line {line}"
            raise WrongUse(f"{where}: {sentence_of(error)}", do=_CORRECT) from error

    def _define(self, plan: Any, line: int) -> None:
        kind = plan.getClass().getSimpleName()
        define = _STATEMENTS.get(kind)
        if define is None:
            raise WrongUse(
                f"{self.file}, line {line}: a pipeline does not accept {kind} in SQL",
                "It accepts CREATE STREAMING TABLE, CREATE FLOW, CREATE MATERIALIZED VIEW, CREATE "
                "VIEW, SET and USE.",
                _CORRECT,
            )
        define(self, plan, line)

    def table_as(self, plan: Any, line: int) -> None:
        self.table(plan, line)
        self._flow(self._name(plan.name()), plan.query(), line)

    def table(self, plan: Any, line: int) -> None:
        kind = plan.getClass().getSimpleName().removeprefix("Create")
        kind = kind.removesuffix("AsSelect").removesuffix("AutoCdc")
        provider = plan.tableSpec().provider()
        format = provider.get() if provider.isDefined() else None
        self.found.outputs[self._name(plan.name())] = OutputDefinition(kind, format)

    def temporary_view(self, plan: Any, line: int) -> None:
        self._view(plan.name().unquotedString(), plan.plan(), line)

    def view(self, plan: Any, line: int) -> None:
        # The runner keeps the view in the catalog; here it must exist before a flow reads it.
        self._view(self._name(plan.child()), plan.query(), line)

    def flow(self, plan: Any, line: int) -> None:
        work, name = plan.flowOperation(), self._name(plan.name())
        if work.getClass().getSimpleName() == "InsertIntoStatement":
            self._flow(name, work.query(), line, self._name(work.table()))
        else:
            into = _each(work.targetTable())
            self.found.not_judged.append((name, ".".join(into)))

    def set(self, plan: Any, line: int) -> None:
        pair = plan.kv()
        if not pair.isDefined() or not pair.get()._2().isDefined():
            raise WrongUse(
                f"{self.file}, line {line}: SET needs a name and a value",
                do="Write it as SET key = value.",
            )
        self.conf[pair.get()._1()] = pair.get()._2().get()

    def use_database(self, plan: Any, line: int) -> None:
        *catalog, self.database = _each(plan.namespace())
        self.catalog = catalog[-1] if catalog else self.catalog

    def use_catalog(self, plan: Any, line: int) -> None:
        named = plan.productElement(0)  # the name itself in Spark 4.1, later an expression
        if not isinstance(named, str):
            tracker = self.spark._jvm.org.apache.spark.sql.catalyst.QueryPlanningTracker()
            analyzer = self.spark._jsparkSession.sessionState().analyzer()
            named = analyzer.executeAndCheck(plan, tracker).getCatalogName()
        self.catalog, self.database = named, None

    def changes(self, plan: Any, line: int) -> None:
        self.table(plan, line)
        name = self._name(plan.name())
        self.found.not_judged.append((name, name))

    def _view(self, name: str, query: Any, line: int) -> None:
        self.found.outputs[name] = OutputDefinition(VIEW)
        self._flow(name, query, line)

    def _flow(self, name: str, query: Any, line: int, target: str | None = None) -> None:
        spark, catalog, database = self.spark, self.catalog, self.database

        def frame() -> Any:
            from pyspark.sql import DataFrame

            with _current(spark, catalog, database):
                rows = spark._jvm.org.apache.spark.sql.classic.Dataset.ofRows
                return DataFrame(rows(spark._jsparkSession, query), spark)

        conf = dict(self.conf)
        self.found.flows.append(FlowDefinition(name, target or name, conf, frame, self.file, line))

    def _name(self, plan: Any) -> str:
        helper = self.spark._jvm.org.apache.spark.sql.pipelines.graph.IdentifierHelper
        name: str = helper.toTableIdentifier(plan).unquotedString()
        return name


_STATEMENTS: dict[str, Callable[[_SqlFile, Any, int], None]] = {
    "CreateStreamingTableAsSelect": _SqlFile.table_as,
    "CreateStreamingTable": _SqlFile.table,
    "CreateStreamingTableAutoCdc": _SqlFile.changes,
    "CreateMaterializedViewAsSelect": _SqlFile.table_as,
    "CreateViewCommand": _SqlFile.temporary_view,
    "CreateView": _SqlFile.view,
    "CreateFlowCommand": _SqlFile.flow,
    "SetCommand": _SqlFile.set,
    "SetNamespaceCommand": _SqlFile.use_database,
    "SetCatalogCommand": _SqlFile.use_catalog,
}


def _each(values: Any) -> Iterator[Any]:
    """Yield the items of a Scala sequence."""
    for at in range(values.length()):
        yield values.apply(at)


@contextlib.contextmanager
def _current(spark: Any, catalog: str | None, database: str | None) -> Iterator[None]:
    """Look up names without a schema where the file's USE statements say."""
    before = spark.catalog.currentCatalog(), spark.catalog.currentDatabase()
    try:
        _use(spark, catalog, database)
        yield
    finally:
        _use(spark, *before)


def _use(spark: Any, catalog: str | None, database: str | None) -> None:
    if catalog is not None and catalog != spark.catalog.currentCatalog():
        spark.catalog.setCurrentCatalog(catalog)
    if database is not None and database != spark.catalog.currentDatabase():
        spark.catalog.setCurrentDatabase(database)
