"""`--with MIGRATION.py`: the user's functions over the rows of state, run by Spark and checked.

A function gets the old rows as a DataFrame of `key` and `value`, as `floodmark state`
shows them, and gives those of the new code. What it gives is written aside, looked at as a
whole, and only then taken into the new checkpoint.
"""

from __future__ import annotations

import hashlib
import importlib.util
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from floodmark.changes.matching import DROPPED_KEYS, MERGES
from floodmark.changes.migrate import Drawn
from floodmark.changes.shapes import JOIN, Operator
from floodmark.errors import FloodmarkError, WrongUse
from floodmark.state.operators import Shape
from floodmark.state.reshape import NotCarried
from floodmark.state.types import Atom, Struct, ddl, distinct, parse_struct
from floodmark.state.widening import widens
from floodmark.storage.files import Files, open_files
from floodmark.storage.state_reshape import Given, Part

if TYPE_CHECKING:
    from floodmark.storage.state_reshape import Rows

_PREFIX = "operator_"
_SHOWN = 5
PARTITION = "_partition"


@dataclass(frozen=True)
class MigrationCode:
    path: str
    digest: str
    functions: Mapping[tuple[int, str], Callable[[Any], Any]]
    """(operator of the new code, store) → the function that makes its rows."""
    merge: Mapping[str, str] | None


def load_migration(path: str, drawn: Drawn) -> MigrationCode:
    try:
        source = Path(path).read_bytes()
    except OSError as error:
        raise WrongUse(f"{path}: cannot read it ({error.strerror})") from None
    module = _import(path)
    operators = {one.operator.number: one.operator for one in drawn.operators}
    shapes = {
        (one.operator.number, reading.family or reading.folder): reading.shape
        for one in drawn.operators
        for reading in one.readings
    }
    functions = {}
    for name, value in vars(module).items():
        if name.startswith(_PREFIX) and callable(value):
            place = _place(path, name, operators)
            if shapes[place] is not Shape.PAIRS:
                raise NotCarried(
                    f"{path}: {name}: {place[1]} is a {shapes[place].value}, not a single value",
                    "Rows of lists, maps and timers hang together in ways that a function over "
                    "single rows could break.",
                    "Leave it out: the variable is carried as it is.",
                )
            functions[place] = value
    merge = getattr(module, "merge", None)
    if not functions and merge is None:
        raise WrongUse(
            f"{path}: no function in it is for the state",
            "A function is named after the operator whose rows it makes: operator_0, and "
            "operator_0_NAME for a variable.",
            "`floodmark migrate … --skeleton` writes one to begin with.",
        )
    return MigrationCode(path, hashlib.sha256(source).hexdigest(), functions, _merge(path, merge))


def _merge(path: str, merge: Any) -> Mapping[str, str] | None:
    if merge is None:
        return None
    if not isinstance(merge, Mapping) or not set(merge.values()) <= set(MERGES):
        raise WrongUse(
            f"{path}: merge is a dict of column → {', '.join(MERGES)}",
            do="What is more than that is computed in a function: group by the new key there.",
        )
    return {str(name): str(how) for name, how in merge.items()}


def _import(path: str) -> Any:
    name = "floodmark_migration_" + hashlib.sha256(path.encode()).hexdigest()[:12]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise WrongUse(f"{path}: not a Python file", do="Its name must end in .py.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        sys.modules.pop(name, None)
        raise WrongUse(f"{path} fails on import: {type(error).__name__}: {error}") from error
    return module


def _place(path: str, name: str, operators: Mapping[int, Operator]) -> tuple[int, str]:
    number, _, store = name.removeprefix(_PREFIX).partition("_")
    operator = operators.get(int(number)) if number.isdecimal() else None
    if operator is None:
        known = ", ".join(f"{_PREFIX}{n} ({one.name or one.kind})" for n, one in operators.items())
        raise WrongUse(f"{path}: {name}: the new code has no such operator", f"It has {known}.")
    if operator.kind == JOIN:
        raise NotCarried(
            f"{path}: {name}: the rows of a join are not made by a function",
            "Spark numbers the rows of each key, and counts on the numbers.",
            "Columns come and go by themselves; --rename and --default say the rest.",
        )
    names = [one.name for one in operator.stores]
    if not store and len(names) == 1:
        return operator.number, names[0]
    if store not in names:
        known = ", ".join(f"{_PREFIX}{operator.number}_{one}" for one in names)
        raise WrongUse(f"{path}: {name}: which rows are meant?", f"There are {known}.")
    return operator.number, store


@dataclass(frozen=True)
class Made:
    """Rows that a function or a table gave, on their way into the new state."""

    frame: Any
    part: Part
    partitions: int
    where: str
    before: Any | None = None
    """The old rows, where there are any."""
    old_key: Struct | None = None
    merge: Mapping[str, str] | None = None
    accept: frozenset[str] = frozenset()


def call(function: Callable[[Any], Any], frame: Any, where: str) -> Any:
    from pyspark.errors import PySparkException

    try:
        result = function(frame)
    except FloodmarkError:
        raise
    except PySparkException as error:
        raise WrongUse(f"{where}: Spark refuses what the function does", str(error)) from error
    except Exception as error:
        raise WrongUse(f"{where} fails: {type(error).__name__}: {error}") from error
    if not hasattr(result, "schema") or not hasattr(result, "select"):
        raise WrongUse(
            f"{where} gives a {type(result).__name__}, not a DataFrame",
            do="Return the rows: state.select(…)",
        )
    return result


def fitted(made: Made) -> Any:
    """The frame with just the columns and types of the new state; refuses any others."""
    from pyspark.sql import functions

    if sorted(made.frame.columns) != ["key", "value"]:
        raise NotCarried(
            f"{made.where} gives the columns {', '.join(made.frame.columns)}",
            "A row of state is a key and a value.",
            "Select two structs: F.struct(…).alias('key'), F.struct(…).alias('value').",
        )
    schema = made.part.reading.schema
    assert schema is not None
    columns = [
        functions.struct(*_fields(made, name, wanted)).alias(name)
        for name, wanted in (("key", schema.key), ("value", schema.value))
    ]
    return made.frame.select(*columns)


def _fields(made: Made, name: str, wanted: Struct) -> list[Any]:
    from pyspark.sql import functions
    from pyspark.sql.types import StructType

    kind = made.frame.schema[name].dataType
    if not isinstance(kind, StructType):
        raise NotCarried(f"{made.where}: {name} is {kind.simpleString()}, not a struct")
    found, wanted = distinct(parse_struct(kind.json())), distinct(wanted)
    kept = [one for one in wanted.fields if not _is_void(one.type)]
    if {one.name for one in kept} - set(found.names) or set(found.names) - set(wanted.names):
        raise NotCarried(
            f"{made.where}: {name} has the columns {', '.join(found.names) or 'none'}",
            f"The new code's are {ddl(wanted)}.",
            "Give just these; `--skeleton` shows them.",
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
        if mine.type != one.type:
            column = column.cast(_spark_type(one.type))
        columns.append(column.alias(one.name))
    return columns or [functions.lit(None).cast("int").alias("nothing")]


def _is_void(kind: Any) -> bool:
    return isinstance(kind, Atom) and kind.name == "void"


def _spark_type(kind: Any) -> str:
    text = ddl(kind)
    return f"STRUCT<{text}>" if isinstance(kind, Struct) else text


def spool(spark: Any, made: Made, place: str) -> Any:
    """Writes the rows aside, by their new partitions, and gives them back as they were written."""
    from pyspark.sql import functions

    rows = fitted(made)
    if made.merge is not None:
        rows = _merged(rows, made)
    rows = rows.withColumn(PARTITION, _partition(made))
    # Times must keep their microseconds, as the state has them.
    spark.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
    rows.repartition(made.partitions, functions.col(PARTITION)).write.partitionBy(
        PARTITION
    ).parquet(place)
    return spark.read.schema(rows.schema).parquet(place)


def _merged(rows: Any, made: Made) -> Any:
    from pyspark.sql import functions

    assert made.merge is not None
    schema = made.part.reading.schema
    assert schema is not None
    known = {
        "sum": functions.sum,
        "min": functions.min,
        "max": functions.max,
        "any": functions.first,
    }
    names = [f.name for f in distinct(schema.value).fields if not _is_void(f.type)]
    missing = [name for name in names if name not in made.merge]
    if missing:
        raise NotCarried(f"{made.where}: merge says nothing of {', '.join(missing)}")
    found = rows.groupBy("key").agg(
        *[known[made.merge[name]](f"value.`{name}`").alias(name) for name in names]
    )
    return found.select(
        "key", functions.struct(*[functions.col(f"`{name}`") for name in names]).alias("value")
    )


def _partition(made: Made) -> Any:
    """Spark's own hash of the columns that the query groups by."""
    from pyspark.sql import functions

    from floodmark.state.grouping import grouping_of

    grouping = grouping_of(made.part.reading)
    if grouping.is_keyless or made.partitions == 1:
        return functions.lit(0)
    columns = [functions.col(f"key.`{one.name}`") for one in grouping.fields]
    return functions.pmod(functions.hash(*columns), functions.lit(made.partitions))


def check_rows(made: Made, rows: Any) -> int:
    """Looks at all of what was given; shows the first rows that are wrong."""
    from pyspark.sql import functions

    schema = made.part.reading.schema
    assert schema is not None
    rows = rows.drop(PARTITION)
    for name, struct in (("key", schema.key), ("value", schema.value)):
        for one in distinct(struct).fields:
            if not one.nullable and not _is_void(one.type):
                wrong = rows.where(functions.col(f"{name}.`{one.name}`").isNull())
                _refuse(made, wrong, f"{name}.{one.name} may not be null")
    twice = rows.groupBy("key").count().where("count > 1")
    _refuse(made, twice, "two rows have one key")
    _refuse_dropped(made, rows, schema.key)
    return int(rows.count())


def _refuse_dropped(made: Made, rows: Any, key: Struct) -> None:
    if made.before is None or DROPPED_KEYS in made.accept:
        return
    if made.old_key is not None and _same(made.old_key, key):
        before = made.before.select("key")
        gone = before.join(rows.select("key"), before["key"] == rows["key"], "left_anti")
        _refuse(made, gone, "keys of the old state are not in the new", DROPPED_KEYS)
        return
    if made.merge is not None:
        return
    count, old = rows.count(), made.before.count()
    if count != old:
        raise NotCarried(
            f"{made.where}: {old} rows became {count}",
            "The key is another one, so nobody can tell merged rows from lost ones.",
            f"If it is right: --accept {DROPPED_KEYS}.",
        )


def _same(old: Struct, new: Struct) -> bool:
    return [(f.name, f.type) for f in old.fields] == [(f.name, f.type) for f in new.fields]


def _refuse(made: Made, wrong: Any, what: str, accept: str = "") -> None:
    first = [str(row.asDict(recursive=True)) for row in wrong.limit(_SHOWN).collect()]
    if not first:
        return
    raise NotCarried(
        f"{made.where}: {what}, in {wrong.count()} rows",
        "The first are:\n" + "\n".join(first),
        f"If it is meant: --accept {accept}." if accept else "Nothing was written. Mend the rows.",
    )


def rows_of(places: Mapping[tuple[int, str], str], operator: int) -> Given:
    """The rows that were written aside for one operator, read back for its writer."""

    def rows(part: Part, partition: int) -> Rows:
        files = open_files(places[operator, part.name])
        folder = f"{PARTITION}={partition}"
        for name in sorted(files.level(folder).files):
            if name.endswith(".parquet"):
                yield from _read(files, f"{folder}/{name}", part)

    return rows


def _read(files: Files, path: str, part: Part) -> Rows:
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = part.reading.schema
    assert schema is not None
    found = pq.ParquetFile(pa.BufferReader(files.read(path)))
    for batch in found.iter_batches():
        yield (
            _as(batch.column("key"), schema.key),
            _as(batch.column("value"), schema.value),
        )


def _as(array: Any, schema: Struct) -> Any:
    import pyarrow as pa

    from floodmark.state.types import arrow_type

    kinds = list(arrow_type(schema))
    parts = []
    for one, kind in zip(distinct(schema).fields, kinds, strict=True):
        if _is_void(one.type):
            parts.append(pa.nulls(len(array), kind.type))
        else:
            parts.append(array.field(one.name).cast(kind.type))
    return pa.StructArray.from_arrays(parts, fields=kinds)
