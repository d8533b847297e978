"""Redirects what a drilled pipeline writes through Spark to the run, or refuses it."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from floodmark.addresses import public_url
from floodmark.connectors.delta.offset import TABLE_LOG
from floodmark.engine.app.effects.jvm_calls import WRITER_V2
from floodmark.engine.app.effects.spark_writes import RDD_ACTIONS
from floodmark.engine.app.effects.sql_text import changes_something, shortened
from floodmark.engine.app.patching import Patches
from floodmark.engine.drill.doors.places import Places
from floodmark.engine.drill.killing.marks import Marks
from floodmark.engine.drill.run_spec import SinkNote
from floodmark.engine.spark.scala import jvm_field, scala_map
from floodmark.errors import WrongUse

SEEN = ("delta", "parquet", "orc", "json", "csv", "text", "xml", "avro")
"""Formats whose rows the drill can read back."""
_NOWHERE = ("noop",)
_TARGET = re.compile(
    r"\s*(?:INSERT\s+(?:INTO|OVERWRITE)(?:\s+TABLE)?|MERGE\s+INTO|UPDATE|DELETE\s+FROM)\s+"
    r"delta\.`([^`]+)`",
    re.IGNORECASE,
)
"""Matches a statement that changes a Delta table by its path; such a statement changes one."""
_BY_PATH = re.compile(r"\b(delta|parquet|orc|json|csv)\.`([^`]+)`", re.IGNORECASE)
_SHAPED = ("csv", "json", "text", "xml")
_REFUSED = (
    ("pyspark.sql.readwriter", "DataFrameWriterV2", "writeTo(…)"),
    ("pyspark.sql.merge", "MergeIntoWriter", "mergeInto(…)"),
)
_OVERWRITE_MODE = "spark.sql.sources.partitionOverwriteMode"
_CHANGES = ("update", "delete")


def unseen(words: str) -> WrongUse:
    return WrongUse(
        f"the drill cannot see into {words}",
        "A drill compares what the sink holds with and without a crash, and never writes to the "
        "real sink.",
        "A drill sees files, Delta tables, SQLite and, with --sink postgresql://…, a PostgreSQL "
        "test database, written by the query or by its foreachBatch function.",
    )


class SparkDoors:
    def __init__(self, places: Places, marks: Marks, jdbc: Callable[[str], str]) -> None:
        self._places = places
        self._marks = marks
        self._jdbc = jdbc
        """Returns the address of the run's own database for another database's address."""
        self.overwritten: Callable[[Any, SinkNote, Callable[[], Any]], Any] = (
            lambda _spark, _note, write: write()
        )

    def install(self, patches: Patches) -> None:
        from pyspark import RDD
        from pyspark.sql import SparkSession
        from pyspark.sql.readwriter import DataFrameReader, DataFrameWriter

        save = DataFrameWriter.save
        for name in ("save", "json", "parquet", "text", "csv", "orc", "xml", "saveAsTable"):
            patches.wrap(DataFrameWriter, name, self._writing(name, save))
        patches.wrap(DataFrameWriter, "insertInto", self._inserting(save))
        patches.wrap(DataFrameWriter, "jdbc", self._to_database)
        for name in ("load", "json", "parquet", "text", "csv", "orc", "xml"):
            patches.wrap(DataFrameReader, name, self._reading)
        patches.wrap(DataFrameReader, "jdbc", self._from_database)
        patches.wrap(DataFrameReader, "table", self._reading_table)
        patches.wrap(SparkSession, "table", self._reading_table)
        patches.wrap(SparkSession, "sql", self._sql)
        for module, owner, words in _REFUSED:
            if importlib.util.find_spec(module) is not None:
                found = getattr(importlib.import_module(module), owner)
                for name in (*WRITER_V2, "merge"):
                    patches.wrap(found, name, _refusing(words))
        for name in RDD_ACTIONS:
            patches.wrap(RDD, name, _refusing(f"RDD.{name}()"))
        self._install_partitions(patches)
        if importlib.util.find_spec("delta") is not None:
            self._install_delta(patches)

    def refuse_starts(self, patches: Patches) -> None:
        """Refuse queries that a function starts: they would have other checkpoints and sinks."""
        from pyspark.sql.streaming.readwriter import DataStreamWriter

        for name in ("start", "toTable"):
            patches.wrap(DataStreamWriter, name, _refusing("a query that the function starts"))

    def _install_partitions(self, patches: Patches) -> None:
        """Run Python functions over rows in this process, where the doors are."""
        from pyspark.sql import DataFrame

        classes: list[Any] = [DataFrame]
        if importlib.util.find_spec("pyspark.sql.classic") is not None:
            classes.append(importlib.import_module("pyspark.sql.classic.dataframe").DataFrame)

        def each_partition(original: Any) -> Any:
            def run(frame: Any, f: Callable[[Any], None]) -> None:
                f(iter(frame.collect()))

            return run

        def each(original: Any) -> Any:
            def run(frame: Any, f: Callable[[Any], None]) -> None:
                for row in frame.collect():
                    f(row)

            return run

        for one in classes:
            patches.wrap(one, "foreachPartition", each_partition)
            patches.wrap(one, "foreach", each)

    def _install_delta(self, patches: Patches) -> None:
        from delta.tables import DeltaMergeBuilder, DeltaTable, DeltaTableBuilder

        def by_path(original: Any) -> Any:
            def for_path(spark: Any, path: str, *given: Any, **named: Any) -> Any:
                place = self._table_at(spark, path)
                return original(spark, str(place), *given, **named)

            return staticmethod(for_path)

        def by_name(original: Any) -> Any:
            def for_name(spark: Any, name: str) -> Any:
                place = self._places.of_table(name)
                self._note(f"table {name}", place, "delta")
                return DeltaTable.forPath(spark, str(place))

            return staticmethod(for_name)

        def is_table(original: Any) -> Any:
            def ask(spark: Any, identifier: str) -> bool:
                return bool(original(spark, str(self._table_at(spark, identifier))))

            return staticmethod(ask)

        def located(original: Any) -> Any:
            def location(builder: Any, path: str) -> Any:
                place = self._places.of(path)
                self._note(path, place, "delta")
                return original(builder, str(place))

            return location

        patches.wrap(DeltaTable, "forPath", by_path)
        patches.wrap(DeltaTable, "forName", by_name)
        patches.wrap(DeltaTable, "isDeltaTable", is_table)
        for name in ("convertToDelta", "clone", "cloneAtVersion", "cloneAtTimestamp"):
            patches.wrap(DeltaTable, name, _refusing(f"DeltaTable.{name}()"))
        patches.wrap(DeltaTableBuilder, "location", located)
        patches.wrap(DeltaTableBuilder, "tableName", _refusing("a Delta table by its name"))
        patches.wrap(DeltaMergeBuilder, "execute", self._counted)
        for name in _CHANGES:
            patches.wrap(DeltaTable, name, self._counted)

    def _counted(self, original: Any) -> Any:
        def call(*given: Any, **named: Any) -> Any:
            found = original(*given, **named)
            self._marks.wrote()
            return found

        return call

    def _table_at(self, spark: Any, path: str) -> Path:
        """Return the run's own table: empty, with the columns of the real table if there is one."""
        place = self._places.of(path)
        if (place / TABLE_LOG).is_dir() or Path(path) == place:
            return place
        from pyspark.errors import PySparkException

        self._note(path, place, "delta")
        if (place / TABLE_LOG).is_dir():
            return place
        try:
            # The first line of the real table's log is read, never written.
            rows = spark.read.format("delta").load(path)
            detail = spark.sql(f"DESCRIBE DETAIL delta.`{path}`").first()
        except PySparkException:
            return place
        writer = rows.limit(0).write.format("delta").partitionBy(*detail["partitionColumns"])
        writer._jwrite.save(str(place))
        return place

    def _note(self, real: str, place: Path, kind: str, **told: Any) -> SinkNote:
        copied = self._places.bring(real, place)
        note = SinkNote(public_url(real), str(place), kind, by="function", copied=copied, **told)
        self._places.note(note)
        return note

    def _writing(self, method: str, save: Any) -> Callable[[Any], Any]:
        def wrapper(original: Any) -> Any:
            def write(writer: Any, *given: Any, **named: Any) -> Any:
                told = inspect.signature(original).bind(writer, *given, **named).arguments
                told.pop("self", None)
                options = told.pop("options", {})
                mode, parts = told.pop("mode", None), told.pop("partitionBy", None)
                path, table = told.pop("path", None), told.pop("name", None)
                kind = told.pop("format", None) or (
                    method if method not in ("save", "saveAsTable") else None
                )
                writer.mode(mode).options(**options)
                writer._set_opts(**{key: value for key, value in told.items() if value is not None})
                if parts is not None:
                    writer.partitionBy(parts)
                if kind is not None:
                    writer.format(kind)
                self._save(writer, path, table, save)

            return write

        return wrapper

    def _inserting(self, save: Any) -> Callable[[Any], Any]:
        def wrapper(original: Any) -> Any:
            def insert(writer: Any, tableName: str, overwrite: Any = None) -> None:  # noqa: N803
                by_path = _BY_PATH.fullmatch(tableName)
                writer.mode("append" if not overwrite else "overwrite")
                if by_path is not None:
                    self._save(writer.format(by_path[1].lower()), by_path[2], None, save)
                else:
                    self._save(writer, None, tableName, save)

            return insert

        return wrapper

    def _save(self, writer: Any, path: str | None, table: str | None, save: Any) -> None:
        kind = str(jvm_field(writer._jwrite, "source") or "parquet").lower()
        options = scala_map(jvm_field(writer._jwrite, "extraOptions"))
        path = path or options.get("path")
        if kind == "jdbc" or kind.endswith("jdbcrelationprovider"):
            writer.option("url", self._jdbc(options.get("url", "")))
            save(writer)
            self._marks.wrote()
            return
        if kind in _NOWHERE:
            save(writer)
            return
        if kind not in SEEN or (path is None and table is None):
            raise unseen(f"a {kind} sink that the foreachBatch function writes to")
        place = self._places.of_table(table) if table else self._places.of(str(path))
        mode = str(_mode_of(writer)).lower()
        note = self._note(
            f"table {table}" if table else str(path),
            place,
            kind,
            options={key: value for key, value in options.items() if key in ("header", "sep")},
            schema=writer._df.schema.json() if kind in _SHAPED else None,
            transaction=options.get("txnappid"),
            append=mode == "append",
        )
        if "path" in options:
            writer.option("path", str(place))

        def write() -> None:
            save(writer, None if "path" in options else str(place))

        if mode == "overwrite" and not _by_partition(writer._spark, options):
            self.overwritten(writer._spark, note, write)
        else:
            write()
        self._marks.wrote()

    def _to_database(self, original: Any) -> Any:
        def jdbc(writer: Any, url: str, *given: Any, **named: Any) -> None:
            original(writer, self._jdbc(url), *given, **named)
            self._marks.wrote()

        return jdbc

    def _from_database(self, original: Any) -> Any:
        def jdbc(reader: Any, url: str, *given: Any, **named: Any) -> Any:
            own = url if self._marks.batch is None else self._jdbc(url)
            return original(reader, own, *given, **named)

        return jdbc

    def _reading(self, original: Any) -> Any:
        def read(reader: Any, path: Any = None, *given: Any, **named: Any) -> Any:
            options = scala_map(jvm_field(reader._jreader, "extraOptions"))
            # A statement that begins the session, or a query, can also change a database.
            if "url" in options and self._marks.batch is not None:
                reader = reader.option("url", self._jdbc(options["url"]))
            if path is None:
                own = options.get("path")
                if own is not None and self._places.of(own).exists():
                    reader = reader.option("path", str(self._places.of(own)))
                return original(reader, *given, **named)
            places = [path] if isinstance(path, str) else path
            if isinstance(path, str | list):
                own_places = [self._own_or_real(str(one)) for one in places]
                path = own_places[0] if isinstance(path, str) else own_places
            return original(reader, path, *given, **named)

        return read

    def _own_or_real(self, path: str) -> str:
        place = self._places.of(path)
        return str(place) if place.exists() else path

    def _reading_table(self, original: Any) -> Any:
        def table(owner: Any, tableName: str) -> Any:  # noqa: N803
            place = self._places.of_table(tableName)
            if not place.exists():
                return original(owner, tableName)
            kind = next(note.kind for note in self._places.notes if note.place == str(place))
            spark = getattr(owner, "_spark", owner)
            return spark.read.format(kind).load(str(place))

        return table

    def _sql(self, original: Any) -> Any:
        def sql(spark: Any, sqlQuery: str, *given: Any, **named: Any) -> Any:  # noqa: N803
            changes = changes_something(sqlQuery)
            target = _TARGET.match(sqlQuery)
            if changes and target is None:
                raise unseen(f"the table of spark.sql({shortened(sqlQuery)!r})")
            if changes and target is not None:
                self._table_at(spark, target[1])

            def own(match: re.Match[str]) -> str:
                if changes and target is not None and match[2] == target[1]:
                    return f"{match[1]}.`{self._places.of(match[2])}`"
                return f"{match[1]}.`{self._own_or_real(match[2])}`"

            answer = original(spark, _BY_PATH.sub(own, sqlQuery), *given, **named)
            if changes:
                self._marks.wrote()
            return answer

        return sql


def _mode_of(writer: Any) -> Any:
    try:
        return jvm_field(writer._jwrite, "curmode").name()
    except WrongUse:  # before Spark 4
        return jvm_field(writer._jwrite, "mode").name()


def _by_partition(spark: Any, options: Mapping[str, str]) -> bool:
    """Whether an overwrite replaces only a part of the table."""
    mode = options.get("partitionoverwritemode") or spark.conf.get(_OVERWRITE_MODE, "static")
    return "replacewhere" in options or str(mode).lower() == "dynamic"


def _refusing(words: str) -> Callable[[Any], Any]:
    def wrapper(original: Any) -> Any:
        def refused(*given: Any, **named: Any) -> Any:
            raise unseen(words)

        return refused

    return wrapper
