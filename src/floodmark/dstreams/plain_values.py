"""Converts values of a state to rows: plain values with names, for JSON and Parquet.

A tuple becomes `_1`, `_2`, … as Spark names its fields, and a case class its fields. A key or a
value that is one number or text becomes the field `key` or `value`.
"""

from __future__ import annotations

import base64
import re
import struct
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

from floodmark.dstreams.java_objects import JavaArray, JavaEnum, JavaObject
from floodmark.dstreams.scala import held_array, is_boxed, items, option, pairs
from floodmark.errors import CannotRead, OverLimit
from floodmark.state.files.javadata import DataReader

_DEEPEST = 60
_MOST_VALUES = 1_000_000
"""The limit for one key or value: a few bytes can name one list many times."""
_TUPLE = re.compile(r"scala\.Tuple(\d{1,2})(?:\$mc\w+\$sp)?")
_EPOCH = datetime(1970, 1, 1)
_PLAIN = (str, int, float, bool, bytes, type(None), Decimal, datetime, date, time, timedelta)


def named(value: Any, name: str, budget: Budget | None = None) -> dict[str, Any]:
    """Return a key or a value as fields with names."""
    plain = plain_value(value, budget or Budget())
    return plain if isinstance(plain, dict) else {name: plain}


class Budget:
    """Counts how many values one row may still have."""

    def __init__(self) -> None:
        self.left = _MOST_VALUES

    def spend(self, depth: int) -> None:
        self.left -= 1
        if self.left < 0 or depth > _DEEPEST:
            raise OverLimit(
                f"a key or a value of the state has more than {_MOST_VALUES:,} values, or is "
                f"nested more than {_DEEPEST} levels deep",
                "A stream does not have such state: somebody may have made the file to fill the "
                "memory.",
                "Check the file first.",
            )


def plain_value(value: Any, budget: Budget, depth: int = 0) -> Any:
    budget.spend(depth)
    if isinstance(value, (JavaObject, JavaArray, JavaEnum)):
        return _java(value, budget, depth)
    if isinstance(value, complex):
        return {"real": value.real, "imag": value.imag}
    if isinstance(value, _PLAIN):
        return value
    names = getattr(value, "_fields", None) or getattr(value, "__fields__", None)
    if isinstance(value, tuple) and names:
        return {
            str(name): plain_value(one, budget, depth + 1)
            for name, one in zip(names, value, strict=False)
        }
    if isinstance(value, tuple):
        return {f"_{at}": plain_value(one, budget, depth + 1) for at, one in enumerate(value, 1)}
    if isinstance(value, list):
        return [plain_value(one, budget, depth + 1) for one in value]
    if isinstance(value, (set, frozenset)):
        return sorted((plain_value(one, budget, depth + 1) for one in value), key=repr)
    if isinstance(value, dict):
        return _mapping(list(value.items()), budget, depth)
    # Only a trusted pickle can hold other values: a numpy scalar, or an object with fields.
    if hasattr(value, "item") and hasattr(value, "dtype"):
        return plain_value(value.tolist(), budget, depth + 1)
    if hasattr(value, "__dict__"):
        return _mapping([(str(name), one) for name, one in vars(value).items()], budget, depth)
    raise CannotRead(
        f"a value of the state is of {type(value).__module__}.{type(value).__qualname__}",
        "The value has no fields for the columns of a row.",
    )


def has_names_alone(value: Any) -> bool:
    """Whether its fields have names but no order: Java sorts the fields of an object."""
    if isinstance(value, JavaObject) and value.name == "scala.Some":
        return has_names_alone(option(value))
    return isinstance(value, JavaObject) and not value.name.startswith(("java.", "scala."))


def json_value(value: Any) -> Any:
    """Return a plain value as JSON data: times in ISO 8601, bytes in base64."""
    if isinstance(value, dict):
        return {key: json_value(one) for key, one in value.items()}
    if isinstance(value, list):
        return [json_value(one) for one in value]
    if isinstance(value, float):
        return value if value - value == 0 else str(value)
    if isinstance(value, Decimal):
        return format(value, "f") if abs(value.adjusted()) < 10_000 else str(value)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, timedelta):
        return value.total_seconds()
    return value.isoformat() if isinstance(value, (date, time)) else value


def _mapping(found: list[tuple[Any, Any]], budget: Budget, depth: int) -> Any:
    inner = depth + 1
    if all(isinstance(key, str) for key, _ in found):
        return {key: plain_value(value, budget, inner) for key, value in found}
    return [
        {"key": plain_value(key, budget, inner), "value": plain_value(value, budget, inner)}
        for key, value in found
    ]


def _java(value: JavaObject | JavaArray | JavaEnum, budget: Budget, depth: int) -> Any:
    if isinstance(value, JavaEnum):
        return value.constant
    if isinstance(value, JavaArray):
        if isinstance(value.items, bytes):
            return value.items
        return [plain_value(one, budget, depth + 1) for one in value.items]
    if is_boxed(value):
        return value.get("value")
    if value.name == "scala.Some":
        return plain_value(option(value), budget, depth + 1)
    if value.name == "scala.None$" or _module(value) == "scala.None$":
        return None
    if _TUPLE.fullmatch(value.name):
        return {
            f"_{at}": plain_value(one, budget, depth + 1)
            for at, one in enumerate(tuple_items(value), 1)
        }
    if "BigDecimal" in value.name:
        return _decimal(value)
    if value.name == "java.math.BigInteger" or value.name == "scala.math.BigInt":
        return _integer(value)
    if value.name in ("java.util.Date", "java.sql.Timestamp", "java.sql.Date"):
        return _moment(value)
    if value.name == "java.time.Ser":
        return _of_java_time(value)
    if _is_collection(value):
        return _collection(value, budget, depth)
    if value.written:
        raise _only_by_its_class(value.name)
    fields = {
        name: held
        for one in reversed(value.java_class.lineage)
        for name, held in value.fields.get(one.name, {}).items()
        if not name.startswith("$")
    }
    return {name: plain_value(held, budget, depth + 1) for name, held in fields.items()}


def _only_by_its_class(name: str) -> CannotRead:
    return CannotRead(
        f"a value of the state is of {name}, which has its own form of writing",
        "Only that class can read it.",
        "Read it with the application, sc.checkpointFile(folder), and keep plain values in the "
        "state: numbers, text, tuples, case classes, collections, dates.",
    )


def tuple_items(value: JavaObject) -> list[Any]:
    """Return the items of a scala.Tuple, also of one that Scala made for numbers."""
    match = _TUPLE.fullmatch(value.name)
    special = {
        name.partition("$")[0]: held
        for fields in value.fields.values()
        for name, held in fields.items()
        if "$mc" in name
    }
    names = [f"_{at}" for at in range(1, int(match[1]) + 1)] if match else []
    return [special.get(name, value.get(name)) for name in names]


def _module(value: JavaObject) -> str:
    return str(getattr(value.get("moduleClass"), "name", ""))


def _is_collection(value: JavaObject) -> bool:
    return value.name.startswith(("scala.collection.", "java.util.")) or isinstance(
        value.get("array"), JavaArray
    )


def _collection(value: JavaObject, budget: Budget, depth: int) -> Any:
    factory = value.get("factory")
    is_map = "Map" in value.name or (isinstance(factory, JavaObject) and _makes_map(factory))
    if is_map:
        return _mapping(pairs(value), budget, depth)
    held = items(value)
    if not held and not value.written and held_array(value) is None and any(value.fields.values()):
        raise _only_by_its_class(value.name)  # such as a Range, which writes no values
    return [plain_value(one, budget, depth + 1) for one in held]


def _makes_map(factory: JavaObject) -> bool:
    inner = factory.get("factory")
    named_by = _module(inner) if isinstance(inner, JavaObject) else ""
    return "Map" in factory.name or "Map" in named_by


def _integer(value: JavaObject) -> int:
    held = value.get("bigInteger")
    inner = held if isinstance(held, JavaObject) else value
    long = value.get("_long")
    if held is None and type(long) is int:
        return long
    magnitude = inner.get("magnitude")
    sign = inner.get("signum")
    if not isinstance(magnitude, JavaArray) or not isinstance(magnitude.items, bytes):
        raise _only_by_its_class(value.name)
    return int.from_bytes(magnitude.items, "big") * (-1 if sign == -1 else 1)


def _decimal(value: JavaObject) -> Decimal:
    held = value.get("bigDecimal")
    inner = held if isinstance(held, JavaObject) else value
    whole, scale = inner.get("intVal"), inner.get("scale")
    if not isinstance(whole, JavaObject) or type(scale) is not int:
        raise _only_by_its_class(value.name)
    number = _integer(whole)
    digits = tuple(int(digit) for digit in str(abs(number)))
    return Decimal((int(number < 0), digits, -scale))


def _moment(value: JavaObject) -> datetime:
    block = b"".join(one for one in value.written if isinstance(one, bytes))
    if len(block) < 8:
        raise _only_by_its_class(value.name)
    milliseconds = int.from_bytes(block[:8], "big", signed=True)
    nanos = value.get("nanos")
    seconds, rest = divmod(milliseconds, 1000)
    micros = nanos // 1000 if type(nanos) is int else rest * 1000
    try:
        return _EPOCH + timedelta(seconds=seconds, microseconds=micros)
    except OverflowError:
        raise _only_by_its_class(value.name) from None


def _of_java_time(value: JavaObject) -> Any:
    """Decode java.time.Ser: a number that names the class, then its fields."""
    block = b"".join(one for one in value.written if isinstance(one, bytes))
    reader = DataReader(block, 1)
    try:
        kind = block[0] if block else 0
        if kind == 1:
            return timedelta(seconds=reader.number(">q"), microseconds=reader.int32() // 1000)
        if kind == 2:
            seconds, nanos = reader.number(">q"), reader.int32()
            return _EPOCH + timedelta(seconds=seconds, microseconds=nanos // 1000)
        if kind == 3:
            return _local_date(reader)
        if kind == 4:
            return _local_time(reader)
        if kind == 5:
            return datetime.combine(_local_date(reader), _local_time(reader))
    except (ValueError, OverflowError, struct.error):
        pass  # beyond Python's calendar, or no such date
    raise _only_by_its_class(value.name)


def _local_date(reader: DataReader) -> date:
    return date(reader.int32(), reader.number(">b"), reader.number(">b"))


def _local_time(reader: DataReader) -> time:
    """Decode a time; zeros at its end are left out, and its last part is the complement."""
    parts: list[int] = []
    for form in (">b", ">b", ">b"):
        part = reader.number(form)
        if part < 0:
            parts.append(~part)
            break
        parts.append(part)
    else:
        parts.append(reader.int32() // 1000)
    hour, minute, second, micros = [*parts, 0, 0, 0][:4]
    return time(hour, minute, second, micros)
