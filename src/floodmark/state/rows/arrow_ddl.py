"""Writes an Arrow type as Spark's DDL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa


def arrow_ddl(kind: pa.DataType) -> str:
    """Return `key STRING, at TIMESTAMP` for a struct; types that Spark lacks become STRING."""
    import pyarrow as pa

    if not pa.types.is_struct(kind):
        return _name(kind)
    return ", ".join(f"{_quoted(field.name)} {_name(field.type)}" for field in kind)


def _name(kind: Any) -> str:
    import pyarrow.types as types

    if types.is_struct(kind):
        inner = ", ".join(f"{_quoted(field.name)}: {_name(field.type)}" for field in kind)
        return f"STRUCT<{inner}>"
    if types.is_list(kind):
        return f"ARRAY<{_name(kind.value_type)}>"
    if types.is_decimal(kind):
        return f"DECIMAL({kind.precision}, {kind.scale})"
    if types.is_timestamp(kind):
        return "TIMESTAMP" if kind.tz else "TIMESTAMP_NTZ"
    return _NAMES.get(str(kind), "STRING")


_NAMES = {
    "int64": "BIGINT",
    "int32": "INT",
    "double": "DOUBLE",
    "float": "FLOAT",
    "bool": "BOOLEAN",
    "string": "STRING",
    "binary": "BINARY",
    "date32[day]": "DATE",
    "null": "VOID",
}


def _quoted(name: str) -> str:
    return name if name.isidentifier() else "`" + name.replace("`", "``") + "`"
