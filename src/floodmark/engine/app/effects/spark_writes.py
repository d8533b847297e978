"""Leaves out what a script would write through Spark: tables, files, SQL commands.

The calls are skipped and noted. Reading still works: a script may need a table's schema or a
row of settings to build its query.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from typing import Any

from floodmark.engine.app.effects.jvm_calls import WRITER, WRITER_V2, leave_out_jvm_calls
from floodmark.engine.app.effects.sql_text import changes_something, shortened
from floodmark.engine.app.patching import Patches
from floodmark.engine.app.script_calls import Watch

RDD_ACTIONS = (
    "foreach",
    "foreachPartition",
    "saveAsHadoopDataset",
    "saveAsHadoopFile",
    "saveAsNewAPIHadoopDataset",
    "saveAsNewAPIHadoopFile",
    "saveAsPickleFile",
    "saveAsSequenceFile",
    "saveAsTextFile",
)
_DELTA_TABLE = (
    "generate",
    "delete",
    "update",
    "vacuum",
    "upgradeTableProtocol",
    "addFeatureSupport",
    "dropFeatureSupport",
    "restoreToVersion",
    "restoreToTimestamp",
    "clone",
    "cloneAtVersion",
    "cloneAtTimestamp",
)
_SKIPPED: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("pyspark.sql.readwriter", "DataFrameWriter", (*WRITER, "jdbc")),
    ("pyspark.sql.readwriter", "DataFrameWriterV2", WRITER_V2),
    ("pyspark.sql.merge", "MergeIntoWriter", ("merge",)),
    ("pyspark.sql.classic.dataframe", "DataFrame", ("foreach", "foreachPartition")),
    ("pyspark.sql.dataframe", "DataFrame", ("foreach", "foreachPartition")),
    ("pyspark", "RDD", RDD_ACTIONS),
    ("pyspark", "SparkContext", ("setCheckpointDir", "stop", "cancelAllJobs")),
    ("pyspark.sql", "SparkSession", ("stop",)),
    ("delta.tables", "DeltaTable", _DELTA_TABLE),
    ("delta.tables", "DeltaMergeBuilder", ("execute",)),
    ("delta.tables", "DeltaOptimizeBuilder", ("executeCompaction", "executeZOrderBy")),
    ("delta.tables", "DeltaTableBuilder", ("execute",)),
)
# The end of a session changes no data, so it is left out without a warning.
_SILENT = frozenset({"stop", "cancelAllJobs"})


def leave_out_effects(patches: Patches, watch: Watch) -> None:
    for module, owner, names in _SKIPPED:
        if module.startswith("delta") and importlib.util.find_spec("delta") is None:
            continue
        try:
            found = getattr(importlib.import_module(module), owner)
        except (ImportError, AttributeError):  # another release of Spark or Delta
            continue
        for name in names:
            patches.wrap(found, name, _skipping(watch, f"{owner}.{name}", name in _SILENT))
    _leave_out_sql(patches, watch)
    _leave_out_checkpoints(patches, watch)
    _leave_out_tables(patches, watch)
    leave_out_jvm_calls(patches, watch)


def _skipping(watch: Watch, words: str, silent: bool) -> Callable[[Any], Any]:
    def wrapper(original: Any) -> Any:
        def skipped(self: Any, *given: Any, **named: Any) -> Any:
            if not watch.applies():
                return original(self, *given, **named)
            if not silent:
                place = next((one for one in given if isinstance(one, str)), "")
                watch.skip(f"{words}({shortened(place)})")
            return None

        return skipped

    return wrapper


def _leave_out_sql(patches: Patches, watch: Watch) -> None:
    from pyspark.sql import SparkSession

    def wrapper(original: Any) -> Any:
        def sql(self: Any, sqlQuery: str, *given: Any, **named: Any) -> Any:  # noqa: N803
            if not watch.applies() or not changes_something(sqlQuery):
                return original(self, sqlQuery, *given, **named)
            watch.skip(f"spark.sql({shortened(sqlQuery)!r})")
            from pyspark.sql.types import StructType

            return self.createDataFrame([], StructType([]))

        return sql

    patches.wrap(SparkSession, "sql", wrapper)


def _leave_out_checkpoints(patches: Patches, watch: Watch) -> None:
    """Skip DataFrame.checkpoint(), which writes; the rows are the same without it."""
    from pyspark.sql import DataFrame

    classes: list[Any] = [DataFrame]
    if importlib.util.find_spec("pyspark.sql.classic") is not None:
        classes.append(importlib.import_module("pyspark.sql.classic.dataframe").DataFrame)

    def wrapper(original: Any) -> Any:
        def checkpoint(self: Any, *given: Any, **named: Any) -> Any:
            return self if watch.applies() else original(self, *given, **named)

        return checkpoint

    for one in classes:
        patches.wrap(one, "checkpoint", wrapper)


def _leave_out_tables(patches: Patches, watch: Watch) -> None:
    from pyspark.sql.catalog import Catalog

    def wrapper(original: Any) -> Any:
        def create(self: Any, tableName: str, *given: Any, **named: Any) -> Any:  # noqa: N803
            if not watch.applies():
                return original(self, tableName, *given, **named)
            raise watch.refuse(f"spark.catalog.createTable({tableName!r})")

        return create

    for name in ("createTable", "createExternalTable"):
        patches.wrap(Catalog, name, wrapper)
