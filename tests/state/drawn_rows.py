"""Schemas of every type and rows for them, as hypothesis draws them."""

from __future__ import annotations

import datetime as dt
import decimal
from typing import Any

from hypothesis import strategies as st

from floodmark.state.rows.types import Array, Atom, DataType, Decimal, Field, Map, Struct, atom

INTS = {"byte": 8, "short": 16, "integer": 32, "long": 64}
ATOM_VALUES: dict[str, st.SearchStrategy[Any]] = {
    "boolean": st.booleans(),
    "float": st.floats(width=32, allow_nan=False),
    "double": st.floats(allow_nan=False),
    "date": st.dates(),
    "timestamp": st.datetimes().map(lambda d: d.replace(tzinfo=dt.timezone.utc)),
    "timestamp_ntz": st.datetimes(),
    "string": st.text(max_size=20),
    "binary": st.binary(max_size=20),
    "void": st.none(),
    "interval": st.fixed_dictionaries(
        {
            "months": st.integers(-(2**31), 2**31 - 1),
            "days": st.integers(-(2**31), 2**31 - 1),
            "microseconds": st.integers(-(2**63), 2**63 - 1),
        }
    ),
    "variant": st.fixed_dictionaries(
        {"value": st.binary(max_size=9), "metadata": st.binary(max_size=9)}
    ),
    "interval day to second": st.timedeltas(dt.timedelta(-9999), dt.timedelta(9999)),
    "interval year to month": st.integers(-(2**31), 2**31 - 1),
}


def _decimals(precision: int, scale: int) -> st.SearchStrategy[Any]:
    most = 10**precision - 1
    return st.integers(-most, most).map(
        lambda n: decimal.Decimal((0 if n >= 0 else 1, tuple(map(int, str(abs(n)))), -scale))
    )


def _values(kind: DataType) -> st.SearchStrategy[Any]:
    if isinstance(kind, Struct):
        return st.fixed_dictionaries({f.name: _maybe(f.type) for f in kind.fields})
    if isinstance(kind, Array):
        return st.lists(_maybe(kind.element), max_size=70)
    if isinstance(kind, Map):
        return st.lists(st.tuples(_values(kind.key), _maybe(kind.value)), max_size=3)
    if isinstance(kind, Decimal):
        return _decimals(kind.precision, kind.scale)
    if kind.name in INTS:
        half = 2 ** (INTS[kind.name] - 1)
        return st.integers(-half, half - 1)
    return ATOM_VALUES[kind.name]


def _maybe(kind: DataType) -> st.SearchStrategy[Any]:
    return st.one_of(st.none(), _values(kind))


ATOMS = st.sampled_from(
    [
        *(
            atom(name)
            for name in (
                *INTS,
                *("boolean", "float", "double", "date", "timestamp", "timestamp_ntz"),
                *("string", "binary", "void", "interval", "variant"),
            )
        ),
        Atom("interval day to second", "INTERVAL DAY TO SECOND", 8),
        Atom("interval year to month", "INTERVAL YEAR TO MONTH", 4),
        Decimal(9, 2),
        Decimal(18, 0),
        Decimal(19, 5),
        Decimal(38, 10),
    ]
)


def struct_of(kinds: list[DataType]) -> Struct:
    return Struct(tuple(Field(f"c{i}", kind) for i, kind in enumerate(kinds)))


def _nest(inner: st.SearchStrategy[DataType]) -> st.SearchStrategy[DataType]:
    keys = st.sampled_from([atom("string"), atom("long"), Decimal(20, 2)])
    return st.one_of(
        inner.map(Array),
        st.tuples(keys, inner).map(lambda pair: Map(*pair)),
        st.lists(inner, min_size=1, max_size=4).map(struct_of),
    )


SCHEMAS = st.lists(st.recursive(ATOMS, _nest, max_leaves=4), min_size=1, max_size=5).map(struct_of)
TABLES = SCHEMAS.flatmap(
    lambda s: st.tuples(st.just(s), st.lists(_values(s), min_size=1, max_size=6))
)
