"""Fits, merges, stores and checks rows that a user's function or table gives.

Spark does the work. Floodmark checks all rows before any of them goes into a new checkpoint.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from floodmark.changes.matching.operators import DROPPED_KEYS
from floodmark.checkpoint.conf_keys import PARQUET_TIMES
from floodmark.checkpoint.relative_path import RelativePath
from floodmark.engine.state.merging_rows import merged_by_function
from floodmark.errors import FloodmarkError, NotCarried, WrongUse
from floodmark.state.rows.given_rows import MAP_KEY, given_key, given_value, identity, kept
from floodmark.state.rows.types import (
    Array,
    Atom,
    DataType,
    Map,
    Struct,
    ddl,
    distinct,
    parse_struct,
)
from floodmark.state.rows.widening import widens
from floodmark.state.shapes.operators import Reading, Shape
from floodmark.statestore.rewrite.new_state import Given
from floodmark.statestore.rewrite.target import Part
from floodmark.storage.files import Files, open_files

if TYPE_CHECKING:
    from floodmark.statestore.rewrite.old_rows import Rows

_SHOWN = 5
PARTITION = "_partition"
Merge = Mapping[str, str] | Callable[[Any, Any], Any]
"""The way in which rows with the same key become one: a rule for each column, or a function."""


@dataclass(frozen=True)
class Made:
    """Rows that will become the new state."""

    frame: Any
    part: Part
    partitions: int
    where: str
    before: Any | None = None
    """The old rows, if there are any."""
    old: Reading | None = None
    merge: Merge | None = None
    accept: frozenset[str] = frozenset()

    @property
    def key(self) -> Struct:
        return given_key(self.part.reading)

    @property
    def value(self) -> Struct:
        return given_value(self.part.reading)


def call(function: Callable[[Any], Any], frame: Any, where: str) -> Any:
    from pyspark.errors import PySparkException

    try:
        result = function(frame)
    except FloodmarkError:
        raise
    except PySparkException as error:
        raise WrongUse(
            f"{where}: Spark refuses what the function does",
            str(error),
            "Correct the function; nothing was written.",
        ) from error
    except Exception as error:
        raise WrongUse(
            f"{where} fails: {type(error).__name__}: {error}",
            do="Correct the function; nothing was written.",
        ) from error
    if not hasattr(result, "schema") or not hasattr(result, "select"):
        raise WrongUse(
            f"{where} gives a {type(result).__name__}, not a DataFrame",
            do="Return the rows: state.select(…)",
        )
    return result


def fitted(made: Made) -> Any:
    """Return the frame with exactly the new state's columns and types; refuse other columns."""
    from pyspark.sql import functions

    if sorted(made.frame.columns) != ["key", "value"]:
        raise NotCarried(
            f"{made.where} gives the columns {', '.join(made.frame.columns)}",
            "A row of state is a key and a value.",
            "Select two structs: F.struct(…).alias('key'), F.struct(…).alias('value').",
        )
    columns = [
        functions.struct(*_fields(made, name, wanted)).alias(name)
        for name, wanted in (("key", made.key), ("value", made.value))
    ]
    return made.frame.select(*columns)


def _fields(made: Made, name: str, wanted: Struct) -> list[Any]:
    from pyspark.sql import functions
    from pyspark.sql.types import StructType

    kind = made.frame.schema[name].dataType
    if not isinstance(kind, StructType):
        raise NotCarried(
            f"{made.where}: {name} is {kind.simpleString()}, not a struct",
            f"The new code's column is a struct of {ddl(distinct(wanted))}.",
            f"Wrap it: F.struct(…).alias('{name}').",
        )
    found, wanted = distinct(parse_struct(kind.json())), distinct(wanted)
    kept = [one for one in wanted.fields if not is_void(one.type)]
    if {one.name for one in kept} - set(found.names) or set(found.names) - set(wanted.names):
        raise NotCarried(
            f"{made.where}: {name} has the columns {', '.join(found.names) or 'none'}",
            f"The new code's columns are {ddl(wanted)}.",
            "Give exactly these; `--skeleton` shows them.",
        )
    columns = []
    for one in kept:
        mine = found.field(one.name)
        if not widens(mine.type, one.type):
            raise NotCarried(
                f"{made.where}: {name}.{one.name} is {ddl(mine.type)}, not {ddl(one.type)}",
                do=f"Cast it: F.col(…).cast('{ddl(one.type)}').alias('{one.name}')",
            )
        column = functions.col(f"{name}.`{one.name}`")
        if _loose(mine.type) != _loose(one.type):
            column = column.cast(_spark_type(one.type))
        columns.append(column.alias(one.name))
    return columns or [functions.lit(None).cast("int").alias("nothing")]


def is_void(kind: DataType) -> bool:
    return isinstance(kind, Atom) and kind.name == "void"


def _loose(kind: DataType) -> DataType:
    """Return the type with nulls allowed everywhere, the only form to which Spark casts."""
    from dataclasses import replace

    if isinstance(kind, Struct):
        return Struct(tuple(replace(f, type=_loose(f.type), nullable=True) for f in kind.fields))
    if isinstance(kind, Array):
        return Array(_loose(kind.element))
    if isinstance(kind, Map):
        return Map(_loose(kind.key), _loose(kind.value))
    return kind


def _spark_type(kind: DataType) -> str:
    loose = _loose(kind)
    text = ddl(loose)
    return f"STRUCT<{text}>" if isinstance(loose, Struct) else text


def spool(spark: Any, made: Made, place: str) -> Any:
    """Store the rows by their new partitions, and return them as they were stored."""
    from pyspark.sql import functions

    rows = fitted(made)
    failed = None
    if callable(made.merge):
        rows, failed = merged_by_function(rows, made.merge, made.where)
    elif made.merge is not None:
        rows = _merged(rows, made, made.merge)
    rows = rows.withColumn(PARTITION, _partition(made))
    # Times must keep their microseconds, as in the state.
    spark.conf.set(PARQUET_TIMES, "TIMESTAMP_MICROS")
    writer = rows.repartition(made.partitions, functions.col(PARTITION)).write.partitionBy(
        PARTITION
    )
    try:
        writer.parquet(place)
    except Exception as error:
        refusal = failed(error) if failed is not None else None
        if refusal is None:
            raise
        raise refusal from error
    return spark.read.schema(rows.schema).parquet(place)


def _merged(rows: Any, made: Made, merge: Mapping[str, str]) -> Any:
    from pyspark.sql import functions

    known = {
        "sum": functions.sum,
        "min": functions.min,
        "max": functions.max,
        "any": functions.first,
    }
    names = [f.name for f in distinct(made.value).fields if not is_void(f.type)]
    missing = [name for name in names if name not in merge]
    if missing:
        raise NotCarried(
            f"{made.where}: merge has no rule for {', '.join(missing)}",
            "Rows with the same key become one row, in all of its columns.",
            f"Add {', '.join(f'{name!r}: …' for name in missing)} to merge: one of "
            f"{', '.join(known)}.",
        )
    found = rows.groupBy("key").agg(
        *[known[merge[name]](f"value.`{name}`").alias(name) for name in names]
    )
    return found.select(
        "key", functions.struct(*[functions.col(f"`{name}`") for name in names]).alias("value")
    )


def _partition(made: Made) -> Any:
    """Return the partition: Spark's own hash of the columns that the query groups by."""
    from pyspark.sql import functions

    from floodmark.state.keys.grouping import grouping_of

    grouping = grouping_of(made.part.reading)
    if grouping.is_keyless or made.partitions == 1:
        return functions.lit(0)
    columns = [functions.col(f"key.`{one.name}`") for one in grouping.fields]
    return functions.pmod(functions.hash(*columns), functions.lit(made.partitions))


def check_rows(made: Made, rows: Any) -> int:
    """Check all rows, show the first wrong ones, and return the number of rows."""
    rows = rows.drop(PARTITION)
    for name, struct in (("key", made.key), ("value", made.value)):
        for one in distinct(struct).fields:
            wrong = _wrong_nulls(_column(name, one.name), one.type, one.nullable)
            if wrong is not None and not is_void(one.type):
                _refuse(made, rows.where(wrong), f"{name}.{one.name} may not be null")
    twice = rows.groupBy(_identity(made.part.reading)).count().where("count > 1")
    _refuse(made, twice, "two rows have one key")
    _refuse_dropped(made, rows)
    return int(rows.count())


def _column(part: str, name: str) -> Any:
    from pyspark.sql import functions

    return functions.col(f"{part}.`{name}`")


def _wrong_nulls(column: Any, kind: DataType, nullable: bool) -> Any | None:
    """Return a condition for rows with a forbidden null at any depth; None if all may be null."""
    from pyspark.sql import functions

    found = [] if nullable else [column.isNull()]
    if isinstance(kind, Struct):
        for one in kind.fields:
            inner = _wrong_nulls(column[one.name], one.type, one.nullable)
            if inner is not None:
                found.append(column.isNotNull() & inner)
    elif isinstance(kind, Array):

        def is_wrong(element: Any) -> Any:
            return _wrong_nulls(element, kind.element, kind.contains_null)

        if is_wrong(functions.lit(None)) is not None:
            found.append(functions.exists(column, is_wrong))
    whole = None
    for one in found:
        whole = one if whole is None else whole | one
    return whole


def _identity(reading: Reading) -> Any:
    from pyspark.sql import functions

    key = functions.col("key")
    if reading.shape is not Shape.MAP:
        return key
    return functions.struct(key.alias("key"), _column("value", MAP_KEY).alias("userKey")).alias(
        "key"
    )


def _refuse_dropped(made: Made, rows: Any) -> None:
    if made.before is None or DROPPED_KEYS in made.accept:
        return
    reading = made.part.reading
    if made.old is not None and _same(identity(made.old), identity(reading)):
        before = made.before.select(_identity(made.old))
        after = rows.select(_identity(reading))
        gone = before.join(after, before["key"] == after["key"], "left_anti")
        _refuse(made, gone, "keys of the old state are not in the new", DROPPED_KEYS)
        return
    if made.merge is not None:
        return
    count, old = rows.count(), made.before.count()
    if count != old:
        raise NotCarried(
            f"{made.where}: {old} rows became {count}",
            "The key has changed, so Floodmark cannot distinguish merged rows from lost rows.",
            f"If the result is right: --accept {DROPPED_KEYS}.",
        )


def _same(old: Struct, new: Struct) -> bool:
    return [(f.name, f.type) for f in old.fields] == [(f.name, f.type) for f in new.fields]


def _refuse(made: Made, wrong: Any, what: str, accept: str = "") -> None:
    first = [str(row.asDict(recursive=True)) for row in wrong.limit(_SHOWN).collect()]
    if not first:
        return
    count = wrong.count()
    raise NotCarried(
        f"{made.where}: {what}, in {count:,} row{'' if count == 1 else 's'}",
        "The first are:\n" + "\n".join(first),
        f"If this is what you want: --accept {accept}."
        if accept
        else "Nothing was written. Correct the rows.",
    )


def rows_of(places: Mapping[tuple[int, str], str], operator: int) -> Given:
    """Return a function that reads the stored rows of one operator for its writer."""

    def rows(part: Part, partition: int) -> Rows:
        files = open_files(places[operator, part.name])
        folder = f"{PARTITION}={partition}"
        for name in sorted(files.level(folder).files):
            if name.endswith(".parquet"):
                yield from _read(files, f"{folder}/{name}", part.reading)

    return rows


def _read(files: Files, path: str, reading: Reading) -> Rows:
    import pyarrow as pa
    import pyarrow.parquet as pq

    found = pq.ParquetFile(pa.BufferReader(files.read(RelativePath(path))))
    for batch in found.iter_batches():
        yield kept(
            reading,
            _as(batch.column("key"), given_key(reading)),
            _as(batch.column("value"), given_value(reading)),
        )


def _as(array: Any, schema: Struct) -> Any:
    import pyarrow as pa

    from floodmark.state.rows.types import arrow_type

    kinds = list(arrow_type(schema))
    parts = []
    for one, kind in zip(distinct(schema).fields, kinds, strict=True):
        if is_void(one.type):
            parts.append(pa.nulls(len(array), kind.type))
        else:
            parts.append(array.field(one.name).cast(kind.type))
    return pa.StructArray.from_arrays(parts, fields=kinds)
