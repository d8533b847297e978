"""What Spark's `statestore` reader says of a state, beside what Floodmark says, as one text a
row: every value by what is stored, so that no type is lost between Java and Python."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from floodmark.state.rows.types import Array, Atom, DataType, Decimal, Map, Struct, is_place, stored
from floodmark.state.shapes.operators import Shape
from floodmark.statestore.view import StateView

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

APART = (Shape.LIST, Shape.MAP, Shape.TIMER)
"""Spark gives the parts of these values columns of their own."""


def store_of(options: Mapping[str, str]) -> str | None:
    """What Floodmark calls that which Spark's reader is asked for."""
    if "readRegisteredTimers" in options:
        return "timers"
    return next(iter(options.values()), None)


def spark_says(spark: SparkSession, code: Any, place: str, options: Mapping[str, Any]) -> list[str]:
    reader = spark.read.format("statestore")
    for name, value in options.items():
        reader = reader.option(name, value)
    return sorted(code.Rows.spoken(reader.load(place)._jdf))


def floodmark_says(view: StateView) -> list[str]:
    value = view.value_type
    apart = view.reading.shape in APART
    columns = [field.type for field in value.fields] if apart else [value]
    rows = []
    for batch in view.batches():
        for partition, key, found in zip(*batch.columns, strict=True):
            parts = [found[at] for at in range(len(columns))] if apart else [found]
            said = [spoken(part, kind) for part, kind in zip(parts, columns, strict=True)]
            whole = [spoken(key, view.key_type), *said, str(partition.as_py())]
            rows.append("(" + ", ".join(whole) + ")")
    return sorted(rows)


def spoken(scalar: Any, kind: DataType) -> str:
    kind = stored(kind)
    if not scalar.is_valid:
        return "null"
    if isinstance(kind, Struct):
        parts = [spoken(scalar[at], field.type) for at, field in enumerate(kind.fields)]
        return "(" + ", ".join(parts) + ")"
    if isinstance(kind, Array):
        return "[" + ", ".join(spoken(one, kind.element) for one in scalar.values) + "]"
    if isinstance(kind, Map):
        # Spark reads a map of Avro into Java's order, which is none.
        pairs = ((spoken(one[0], kind.key), spoken(one[1], kind.value)) for one in scalar.values)
        return "{" + ", ".join(sorted(f"{key}: {value}" for key, value in pairs)) + "}"
    if isinstance(kind, Decimal):
        sign, digits, _ = scalar.as_py().as_tuple()
        unscaled = int("".join(map(str, digits)))
        return f"d{-unscaled if sign else unscaled}/{kind.scale}"
    return _atom(scalar, kind)


def _atom(scalar: Any, kind: Atom) -> str:
    if kind.name == "interval":
        return f"{scalar['months']}m {scalar['days']}d {scalar['microseconds']}us"
    if kind.name == "variant":
        return "/".join("x" + scalar[part].as_py().hex() for part in ("value", "metadata"))
    if kind.name == "binary" or is_place(kind):
        return "x" + scalar.as_py().hex()
    if kind.name in ("float", "double"):
        layout = ">f" if kind.name == "float" else ">d"
        return "f" + struct.pack(layout, scalar.as_py()).hex()
    if kind.width is None:
        return f"'{scalar.as_py()}'"
    if kind.name == "boolean":
        return str(scalar.as_py()).lower()
    return str(getattr(scalar, "value", scalar.as_py()))
