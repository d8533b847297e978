"""Arrow values as plain JSON data, and JSON data as the values of a key."""

from __future__ import annotations

import base64
import datetime
import decimal
from collections.abc import Mapping
from typing import Any

from floodmark.errors import WrongUse
from floodmark.state.types import (
    Array,
    Atom,
    DataType,
    Decimal,
    Map,
    Struct,
    ddl,
    is_place,
    is_text,
    stored,
)


def plain(scalar: Any) -> Any:
    """A scalar of Arrow as JSON has it: times in ISO 8601, bytes in base64."""
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
        # Spark's times reach beyond Python's year 9999: the number itself is left.
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


def coerce(value: Any, kind: DataType) -> Any:
    """JSON data as a value of a type; a struct must have all its fields and no others."""
    kind = stored(kind)
    if value is None:
        return None
    if isinstance(kind, Struct):
        return _coerce_struct(value, kind)
    if isinstance(kind, Array):
        return [coerce(item, kind.element) for item in value]
    if isinstance(kind, Map):
        pairs = value.items() if isinstance(value, Mapping) else value
        return [(coerce(key, kind.key), coerce(item, kind.value)) for key, item in pairs]
    assert isinstance(kind, (Atom, Decimal))
    try:
        return _coerce_atom(value, kind)
    except (ValueError, TypeError, ArithmeticError):
        raise WrongUse(f"{value!r} is not a {ddl(kind)}") from None


def _coerce_struct(value: Any, kind: Struct) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise WrongUse(f"the key is {value!r}, not an object", f"Its fields are {ddl(kind)}.")
    names = set(kind.names)
    if set(value) != names:
        odd = sorted(set(map(str, value)) ^ names)
        raise WrongUse(f"the key's fields do not fit: {', '.join(odd)}", f"They are {ddl(kind)}.")
    return {field.name: coerce(value[field.name], field.type) for field in kind.fields}


def _coerce_atom(value: Any, kind: Decimal | Atom) -> Any:
    if isinstance(kind, Decimal):
        return decimal.Decimal(str(value))
    if is_text(kind):
        if not isinstance(value, str):
            raise ValueError
        return value
    if kind.name in ("float", "double"):
        return float(value)
    if not isinstance(value, str):
        return value
    if kind.name == "binary" or is_place(kind):
        return base64.b64decode(value, validate=True)
    if kind.name.startswith("time("):
        return datetime.time.fromisoformat(value)
    text = value.replace("Z", "+00:00")
    if kind.name == "date":
        return datetime.date.fromisoformat(text)
    moment = datetime.datetime.fromisoformat(text)
    if kind.name == "timestamp" and moment.tzinfo is None:
        return moment.replace(tzinfo=datetime.timezone.utc)
    return moment
