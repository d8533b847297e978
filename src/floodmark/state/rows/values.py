"""Converts Arrow values to JSON data, and JSON data to the values of a key."""

from __future__ import annotations

import base64
import datetime
import decimal
import operator
import struct
from collections.abc import Mapping
from typing import Any

from floodmark.errors import WrongUse
from floodmark.state.rows import types
from floodmark.state.rows.types import ddl, is_day_time, is_place, is_text, stored


def plain(scalar: Any) -> Any:
    """Return an Arrow scalar as JSON data: times in ISO 8601, bytes in base64."""
    import pyarrow as pa

    if not scalar.is_valid:
        return None
    if isinstance(scalar, pa.StructScalar):
        return {name: plain(scalar[at]) for at, name in enumerate(scalar.type.names)}
    if isinstance(scalar, pa.MapScalar):
        return [[plain(entry[0]), plain(entry[1])] for entry in scalar.values]
    if isinstance(scalar, pa.ListScalar):
        return [plain(value) for value in scalar.values]
    try:
        value = scalar.as_py()
    except (OverflowError, ValueError):
        # Spark's times reach beyond Python's year 9999: return the number itself.
        return scalar.value
    return _plain_value(value, scalar)


def _plain_value(value: Any, scalar: Any) -> Any:
    if isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if value - value == 0 else str(value)
    if isinstance(value, decimal.Decimal):
        return format(value, "f")
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, datetime.timedelta):
        return scalar.value
    return value.isoformat()


def coerce(value: Any, kind: types.DataType) -> Any:
    """Return JSON data as a value of a type; a struct must have all its fields and no others.

    A value that is not exactly of the type is refused, because Arrow would cut 1.5 to the key 1.
    """
    kind = stored(kind)
    if value is None:
        return None
    if isinstance(kind, types.Struct):
        return _coerce_struct(value, kind)
    if isinstance(kind, types.Array):
        return [coerce(item, kind.element) for item in _items(value, kind)]
    if isinstance(kind, types.Map):
        pairs = list(value.items()) if isinstance(value, Mapping) else _items(value, kind)
        if not all(isinstance(pair, (list, tuple)) and len(pair) == 2 for pair in pairs):
            raise _is_not(value, kind)
        return [(coerce(key, kind.key), coerce(item, kind.value)) for key, item in pairs]
    assert isinstance(kind, (types.Atom, types.Decimal))
    try:
        return _coerce_atom(value, kind)
    except (ValueError, TypeError, ArithmeticError, KeyError):
        raise _is_not(value, kind) from None


def _is_not(value: Any, kind: types.DataType) -> WrongUse:
    return WrongUse(
        f"{value!r} is not a {ddl(kind)}",
        do="Write it in the form that `floodmark state CP --json` shows.",
    )


def _items(value: Any, kind: types.DataType) -> list[Any]:
    if not isinstance(value, (list, tuple)):
        raise _is_not(value, kind)
    return list(value)


def _coerce_struct(value: Any, kind: types.Struct) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise WrongUse(
            f"the key is {value!r}, not an object",
            f"The fields are {ddl(kind)}.",
            "Give each field by its name, as JSON.",
        )
    names = set(kind.names)
    if set(value) != names:
        odd = sorted(set(map(str, value)) ^ names)
        raise WrongUse(
            f"the key's fields do not fit: {', '.join(odd)}",
            f"The fields are {ddl(kind)}.",
            "Give all fields and no others.",
        )
    return {field.name: coerce(value[field.name], field.type) for field in kind.fields}


def _coerce_atom(value: Any, kind: types.Decimal | types.Atom) -> Any:
    if isinstance(kind, types.Decimal):
        return _decimal(value, kind)
    if is_text(kind):
        return _only(value, str)
    if kind.name == "boolean":
        return _only(value, bool)
    if kind.name in ("float", "double"):
        return _float(value, kind)
    if kind.name == "binary" or is_place(kind):
        return _octets(value)
    if kind.name == "interval":
        months, days, micros = _parts(value, "months", "days", "microseconds")
        return {
            "months": _whole(months, 4),
            "days": _whole(days, 4),
            "microseconds": _whole(micros, 8),
        }
    if kind.name == "variant":
        body, metadata = _parts(value, "value", "metadata")
        return {"value": _octets(body), "metadata": _octets(metadata)}
    if kind.name == "void":
        raise ValueError
    if kind.width is not None and hasattr(value, "__index__"):
        # Times may be numbers too: beyond Python's years they are shown as numbers.
        return _whole(value, kind.width)
    return _time(value, kind)


def _only(value: Any, kind: type) -> Any:
    if not isinstance(value, kind):
        raise ValueError
    return value


def _whole(value: Any, width: int) -> int:
    number = operator.index(value)
    if isinstance(value, bool) or not -(1 << 8 * width - 1) <= number < 1 << 8 * width - 1:
        raise ValueError
    return number


def _float(value: Any, kind: types.Atom) -> float:
    if isinstance(value, bool):
        raise ValueError
    number = float(value)
    if kind.name == "float" and number - number == 0:
        struct.pack("<f", number)  # raises if the number is too large
    return number


def _decimal(value: Any, kind: types.Decimal) -> decimal.Decimal:
    number = decimal.Decimal(str(value))
    if isinstance(value, bool) or not number.is_finite():
        raise ValueError
    exact = decimal.Context(prec=80, traps=[decimal.Inexact, decimal.InvalidOperation])
    scaled = number.quantize(decimal.Decimal(1).scaleb(-kind.scale), context=exact)
    if len(scaled.as_tuple().digits) > kind.precision:
        raise ValueError
    return scaled


def _octets(value: Any) -> bytes:
    return value if isinstance(value, bytes) else base64.b64decode(_only(value, str), validate=True)


def _parts(value: Any, *names: str) -> list[Any]:
    if not isinstance(value, Mapping) or set(value) != set(names):
        raise ValueError
    return [value[name] for name in names]


def _time(value: Any, kind: types.Atom) -> Any:
    """Parse ISO 8601, or accept Python's own values."""
    if kind.name.startswith("time("):
        return (
            datetime.time.fromisoformat(value)
            if isinstance(value, str)
            else (_only(value, datetime.time))
        )
    if is_day_time(kind):
        return _only(value, datetime.timedelta)
    text = value.replace("Z", "+00:00") if isinstance(value, str) else None
    if kind.name == "date":
        if isinstance(value, datetime.datetime):
            raise ValueError
        return _only(value, datetime.date) if text is None else datetime.date.fromisoformat(text)
    if kind.name not in ("timestamp", "timestamp_ntz"):
        raise ValueError
    moment = (
        _only(value, datetime.datetime) if text is None else (datetime.datetime.fromisoformat(text))
    )
    if kind.name == "timestamp" and moment.tzinfo is None:
        return moment.replace(tzinfo=datetime.timezone.utc)
    return moment
