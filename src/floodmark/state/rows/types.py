"""Describes Spark SQL types as a frozen tree: from Spark's JSON, to its DDL, to Arrow.

Two types have no exact Arrow type that Parquet can hold: a year-month interval becomes its number
of months, a calendar interval its three numbers.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from floodmark.checkpoint.text import compact_json, parse_json, shorten
from floodmark.errors import MalformedFile

if TYPE_CHECKING:
    import pyarrow as pa

MAX_DEPTH = 100
COMPACT_PRECISION = 18
"""Spark stores a decimal up to this precision as a long in its slot."""

_DECIMAL = re.compile(r"decimal\(\s*(\d{1,2})\s*,\s*(-?\d{1,2})\s*\)")
_TIME = re.compile(r"time\((\d)\)")
_TEXT = re.compile(r"(char|varchar)\(\d+\)|string collate \w+")
_YEAR_MONTH = re.compile(r"interval (year|month)( to month)?")
_PLACE = re.compile(r"(geography|geometry)(\([\w:, -]+\))?")
_DAY_TIME = re.compile(r"interval (day|hour|minute|second)( to (hour|minute|second))?")

# Spark's JSON name: (width of the value in bytes, name in DDL); None means variable width.
_ATOMS: dict[str, tuple[int | None, str]] = {
    "void": (8, "VOID"),
    "boolean": (1, "BOOLEAN"),
    "byte": (1, "TINYINT"),
    "short": (2, "SMALLINT"),
    "integer": (4, "INT"),
    "long": (8, "BIGINT"),
    "float": (4, "FLOAT"),
    "double": (8, "DOUBLE"),
    "date": (4, "DATE"),
    "timestamp": (8, "TIMESTAMP"),
    "timestamp_ntz": (8, "TIMESTAMP_NTZ"),
    "string": (None, "STRING"),
    "binary": (None, "BINARY"),
    "interval": (None, "INTERVAL"),
    "variant": (None, "VARIANT"),
}
_ALIASES = {"null": "void", "timestamp_ltz": "timestamp", "calendar_interval": "interval"}


@dataclass(frozen=True)
class Atom:
    """A type with no parameters that change how it is stored."""

    name: str
    ddl: str
    width: int | None


@dataclass(frozen=True)
class Decimal:
    precision: int
    scale: int

    @property
    def width(self) -> int | None:
        return 8 if self.precision <= COMPACT_PRECISION else None


@dataclass(frozen=True)
class Array:
    element: DataType
    contains_null: bool = True


@dataclass(frozen=True)
class Map:
    key: DataType
    value: DataType
    value_contains_null: bool = True


@dataclass(frozen=True)
class Field:
    name: str
    type: DataType
    nullable: bool = True
    metadata: str = "{}"
    """JSON text with char and varchar lengths and collations."""


@dataclass(frozen=True)
class Struct:
    fields: tuple[Field, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(field.name for field in self.fields)

    def index(self, name: str) -> int:
        try:
            return self.names.index(name)
        except ValueError:
            raise MalformedFile(
                f"the state's schema has no field {name!r}, only {', '.join(self.names)}"
            ) from None

    def field(self, name: str) -> Field:
        return self.fields[self.index(name)]


@dataclass(frozen=True)
class UserDefined:
    """A user-defined type, stored as its SQL type. `text` is Spark's JSON of it."""

    sql: DataType
    text: str


DataType = Atom | Decimal | Array | Map | Struct | UserDefined


def atom(name: str) -> Atom:
    width, ddl = _ATOMS[name]
    return Atom(name, ddl, width)


LONG = atom("long")
BOOLEAN = atom("boolean")
BINARY = atom("binary")
INTEGER = atom("integer")


def stored(kind: DataType) -> DataType:
    """Return the type whose bytes are stored: for a user-defined type its SQL type."""
    while isinstance(kind, UserDefined):
        kind = kind.sql
    return kind


def width_of(kind: DataType) -> int | None:
    """Return the bytes of a fixed-width value in an array; None if the slot points elsewhere."""
    kind = stored(kind)
    return kind.width if isinstance(kind, (Atom, Decimal)) else None


@lru_cache(maxsize=256)
def parse_struct(text: str) -> Struct:
    """Return a schema from the form that Spark writes (StructType.json)."""
    kind = _parse(parse_json(text, "the schema"), 0)
    if not isinstance(kind, Struct):
        raise MalformedFile(f"the schema is not a struct: {shorten(text)}")
    return kind


def _parse(value: Any, depth: int) -> DataType:
    if depth > MAX_DEPTH:
        raise MalformedFile(f"the schema is nested more than {MAX_DEPTH} levels deep")
    if isinstance(value, str):
        return parse_name(value)
    if not isinstance(value, dict):
        raise MalformedFile(f"not a type: {shorten(repr(value))}")
    try:
        return _parse_object(value, depth + 1)
    except KeyError as error:
        raise MalformedFile(f"a type lacks {error}: {shorten(repr(value))}") from None


def _parse_object(value: dict[str, Any], depth: int) -> DataType:
    what = value["type"]
    if what == "struct":
        fields = value["fields"]
        if not isinstance(fields, list) or not all(isinstance(item, dict) for item in fields):
            raise MalformedFile(f"a struct's fields are {shorten(repr(fields))}")
        return Struct(tuple(_parse_field(item, depth) for item in fields))
    if what == "array":
        return Array(_parse(value["elementType"], depth), bool(value["containsNull"]))
    if what == "map":
        return Map(
            _parse(value["keyType"], depth),
            _parse(value["valueType"], depth),
            bool(value["valueContainsNull"]),
        )
    if what == "udt":
        return UserDefined(_parse(value["sqlType"], depth), _compact(value))
    raise MalformedFile(f"unknown type {shorten(repr(what))}")


def _parse_field(value: dict[str, Any], depth: int) -> Field:
    name = value["name"]
    if not isinstance(name, str):
        raise MalformedFile(f"a field's name is {shorten(repr(name))}")
    return Field(
        name,
        _parse(value["type"], depth),
        bool(value.get("nullable", True)),
        _compact(value.get("metadata", {})),
    )


def parse_name(name: str) -> DataType:
    name = _ALIASES.get(name, name)
    if name in _ATOMS:
        return atom(name)
    if name == "decimal":
        return Decimal(10, 0)
    if found := _DECIMAL.fullmatch(name):
        precision, scale = int(found[1]), int(found[2])
        if not (1 <= precision <= 38 and -38 <= scale <= 38):
            raise MalformedFile(f"no decimal has precision {precision} and scale {scale}")
        return Decimal(precision, scale)
    if _TEXT.fullmatch(name):
        return Atom(name, name.upper(), None)
    if _PLACE.fullmatch(name):
        return Atom(name, name.upper(), None)
    if _YEAR_MONTH.fullmatch(name):
        return Atom(name, name.upper(), 4)
    if _DAY_TIME.fullmatch(name):
        return Atom(name, name.upper(), 8)
    if _TIME.fullmatch(name):
        return Atom(name, name.upper(), 8)
    raise MalformedFile(
        f"unknown type {shorten(name)!r}", "A newer Spark probably wrote it.", "Upgrade floodmark."
    )


def is_text(kind: Atom) -> bool:
    return kind.name.startswith(("string", "char", "varchar"))


def is_place(kind: Atom) -> bool:
    """Whether a type is geography or geometry: the reference system's number, then WKB."""
    return _PLACE.fullmatch(kind.name) is not None


def is_year_month(kind: Atom) -> bool:
    return _YEAR_MONTH.fullmatch(kind.name) is not None


def is_day_time(kind: Atom) -> bool:
    return _DAY_TIME.fullmatch(kind.name) is not None


def render_json(kind: DataType) -> str:
    """Return the type as Spark's own `json`, byte for byte."""
    return _compact(_json_of(kind))


def _json_of(kind: DataType) -> Any:
    if isinstance(kind, Atom):
        return kind.name
    if isinstance(kind, Decimal):
        return f"decimal({kind.precision},{kind.scale})"
    if isinstance(kind, Array):
        return {
            "type": "array",
            "elementType": _json_of(kind.element),
            "containsNull": kind.contains_null,
        }
    if isinstance(kind, Map):
        return {
            "type": "map",
            "keyType": _json_of(kind.key),
            "valueType": _json_of(kind.value),
            "valueContainsNull": kind.value_contains_null,
        }
    if isinstance(kind, UserDefined):
        return json.loads(kind.text)
    return {"type": "struct", "fields": [_field_json(field) for field in kind.fields]}


def _field_json(field: Field) -> dict[str, Any]:
    return {
        "name": field.name,
        "type": _json_of(field.type),
        "nullable": field.nullable,
        "metadata": json.loads(field.metadata),
    }


def _compact(value: Any) -> str:
    return compact_json(value)


def ddl(kind: DataType) -> str:
    """Return the type as a person writes it: a struct's fields without brackets at the top."""
    if isinstance(kind, Struct):
        return ", ".join(f"{_quoted(f.name)} {_ddl(f.type)}{_not_null(f)}" for f in kind.fields)
    return _ddl(kind)


def _ddl(kind: DataType) -> str:
    if isinstance(kind, Atom):
        return kind.ddl
    if isinstance(kind, Decimal):
        return f"DECIMAL({kind.precision},{kind.scale})"
    if isinstance(kind, Array):
        return f"ARRAY<{_ddl(kind.element)}>"
    if isinstance(kind, Map):
        return f"MAP<{_ddl(kind.key)}, {_ddl(kind.value)}>"
    if isinstance(kind, UserDefined):
        return _ddl(kind.sql)
    inner = ", ".join(f"{_quoted(f.name)}: {_ddl(f.type)}{_not_null(f)}" for f in kind.fields)
    return f"STRUCT<{inner}>"


def _not_null(field: Field) -> str:
    return "" if field.nullable else " NOT NULL"


def _quoted(name: str) -> str:
    plain = name.isascii() and name.isidentifier()
    return name if plain else "`" + name.replace("`", "``") + "`"


def distinct(kind: Struct) -> Struct:
    """Return the struct with unique names: Spark names the buffers of two sums both `sum`."""
    if len(set(kind.names)) == len(kind.fields):
        return kind
    taken: set[str] = set()
    fields = []
    for field in kind.fields:
        name, number = field.name, 2
        while name in taken or (name != field.name and name in kind.names):
            name, number = f"{field.name}_{number}", number + 1
        taken.add(name)
        fields.append(replace(field, name=name))
    return Struct(tuple(fields))


def arrow_type(kind: DataType) -> pa.DataType:
    import pyarrow as pa

    kind = stored(kind)
    if isinstance(kind, Struct):
        return pa.struct(
            [pa.field(field.name, arrow_type(field.type), True) for field in distinct(kind).fields]
        )
    if isinstance(kind, Array):
        return pa.list_(pa.field("element", arrow_type(kind.element), True))
    if isinstance(kind, Map):
        return pa.map_(arrow_type(kind.key), arrow_type(kind.value))
    if isinstance(kind, Decimal):
        return pa.decimal128(kind.precision, kind.scale)
    assert isinstance(kind, Atom)
    return _arrow_atom(kind)


def _arrow_atom(kind: Atom) -> pa.DataType:
    import pyarrow as pa

    if is_text(kind):
        return pa.string()
    if is_place(kind):
        return pa.binary()
    if is_year_month(kind):
        return pa.int32()
    if is_day_time(kind):
        return pa.duration("us")
    if kind.name.startswith("time("):
        return pa.time64("ns")
    return {
        "void": pa.null(),
        "boolean": pa.bool_(),
        "byte": pa.int8(),
        "short": pa.int16(),
        "integer": pa.int32(),
        "long": pa.int64(),
        "float": pa.float32(),
        "double": pa.float64(),
        "date": pa.date32(),
        "timestamp": pa.timestamp("us", "UTC"),
        "timestamp_ntz": pa.timestamp("us"),
        "binary": pa.binary(),
        "interval": pa.struct(
            [("months", pa.int32()), ("days", pa.int32()), ("microseconds", pa.int64())]
        ),
        "variant": pa.struct([("value", pa.binary()), ("metadata", pa.binary())]),
    }[kind.name]
