"""Types that few states have, without Spark: their names, their way to JSON and back."""

from __future__ import annotations

import datetime
from typing import Any

import pyarrow as pa
import pytest

from floodmark.errors import MalformedFile, Refused, WrongUse
from floodmark.state.keys.grouping import Grouping
from floodmark.state.keys.partitioning import partition_of
from floodmark.state.rows.types import (
    Array,
    DataType,
    Field,
    Map,
    Struct,
    arrow_type,
    parse_name,
    parse_struct,
    render_json,
)
from floodmark.state.rows.unsaferow import decode_rows
from floodmark.state.rows.unsaferow_write import encode_rows
from floodmark.state.rows.values import coerce, plain
from floodmark.state.shapes.operators import readings
from floodmark.state.shapes.schema import ColumnFamily, StateSchema

PLACES = ["geometry(OGC:CRS84)", "geography(OGC:CRS84, SPHERICAL)", "geography", "geometry(SRID:0)"]
SHOWN = [
    ("time(6)", "10:11:12.123456"),
    ("time(0)", "23:59:59"),
    ("interval year to month", -14),
    ("interval day to second", -82_676_500_000),
    ("interval", {"months": 14, "days": 25, "microseconds": -7}),
    ("variant", {"value": "DAE=", "metadata": "AQAA"}),
    ("geometry(SRID:0)", "5hAAAAEB"),
    ("varchar(7)", "ab"),
    ("string collate UTF8_LCASE", "Ab"),
    ("timestamp_ntz", "1969-12-31T23:59:59.500000"),
]
NO_TYPE = ["timestamp_ntz(9)", "timestamp_ltz(7)", "geography(", "time(12)", "geometry()"]


@pytest.mark.parametrize("name", PLACES)
def test_a_place_is_its_bytes(name: str) -> None:
    kind = parse_name(name)
    assert arrow_type(kind) == pa.binary()
    schema = Struct((Field("at", kind),))
    assert parse_struct(render_json(schema)) == schema


@pytest.mark.parametrize(("name", "shown"), SHOWN)
def test_what_is_shown_leads_back_to_the_row(name: str, shown: Any) -> None:
    schema = Struct((Field("key", parse_name(name)), Field("other", parse_name(name))))
    row = {"key": shown, "other": None}
    column = pa.array([coerce(row, schema)], arrow_type(schema))
    again = decode_rows(encode_rows(column, schema), schema)
    assert plain(again[0]) == row


def test_a_time_that_is_none() -> None:
    assert coerce("01:02", parse_name("time(6)")) == datetime.time(1, 2)
    with pytest.raises(WrongUse, match="'noon' is not a TIME"):
        coerce("noon", parse_name("time(6)"))


WRONG: list[tuple[str, Any]] = [
    *(("integer", value) for value in (1.5, True, 2**31, "7", "2026-01-01", [1], {})),
    *(("long", value) for value in (2**63, -(2**63) - 1, 1e300)),
    *(("decimal(5,2)", value) for value in (1000, "1.234", "NaN", "1e400", True, [])),
    *(("float", value) for value in (1e300, True, "x", [1.0])),
    *(("boolean", value) for value in (1, "true")),
    *(("date", value) for value in ("2026-13-01", 2**31, True)),
    *(("timestamp", value) for value in ("today", 2**63, {})),
    *(("interval", value) for value in (5, {"months": 1}, "1 day")),
    *(("interval day to second", value) for value in ("1 day", 1.5)),
    *(("variant", value) for value in ("{}", {"value": 1, "metadata": 2})),
    *(("binary", value) for value in (5, "not base64!")),
    ("string", 5),
    ("void", 0),
]


@pytest.mark.parametrize(("name", "value"), WRONG)
def test_what_is_not_of_the_type_is_refused(name: str, value: Any) -> None:
    """It must not come to a key that was not asked for, nor to an error of Arrow's."""
    with pytest.raises(WrongUse, match="is not a"):
        coerce(value, parse_name(name))


@pytest.mark.parametrize("value", [5, "ab", [1], [[1, 2, 3]]])
def test_pairs_that_are_none(value: Any) -> None:
    with pytest.raises(WrongUse, match="is not a"):
        coerce(value, Map(parse_name("string"), parse_name("long")))


@pytest.mark.parametrize("name", NO_TYPE)
def test_a_type_that_is_not_known_is_named(name: str) -> None:
    with pytest.raises(MalformedFile, match="unknown type"):
        parse_name(name)


@pytest.mark.parametrize(
    ("field", "shown"),
    [
        (Field("timeoutTimestamp", parse_name("integer"), False), "long"),
        (Field("timeoutTimestamp", parse_name("integer"), True), "integer"),
        (Field("timeout", parse_name("integer"), False), "integer"),
    ],
)
def test_only_format_1s_own_timeout_is_a_long(field: Field, shown: str) -> None:
    key = render_json(Struct((Field("value", parse_name("string")),)))
    value = Struct((Field("total", parse_name("long")), field))
    schema = StateSchema(2, (ColumnFamily("default", key, render_json(value)),))
    (reading,) = readings(("default",), {"default": schema})
    assert reading.value is not None
    assert reading.value.fields[-1].type == parse_name(shown)
    assert reading.value.fields[0] == value.fields[0]


@pytest.mark.parametrize(
    "kind",
    [
        parse_name("interval"),
        Array(parse_name("interval")),
        Struct((Field("in", parse_name("interval")),)),
    ],
)
def test_a_calendar_interval_has_no_sure_partition(kind: DataType) -> None:
    """Spark 4.3 hashes its days and Spark 4.2 does not: a row must not go astray."""
    fields = (Field("key", kind),)
    grouping = Grouping((), fields)
    keys = pa.array([{"key": None}], arrow_type(Struct(fields)))
    assert not grouping.is_settled
    with pytest.raises(Refused, match="calendar intervals"):
        grouping.hashes(keys)


def test_other_intervals_have_one() -> None:
    names = ["interval year to month", "interval day to second", "time(6)"]
    fields = tuple(Field(f"c{at}", parse_name(name)) for at, name in enumerate(names))
    keys = pa.array([{"c0": -14, "c1": -5, "c2": 7}], arrow_type(Struct(fields)))
    grouping = Grouping((), fields)
    assert grouping.is_settled
    one_by_one = partition_of(keys[0], Struct(fields), 1000)
    assert grouping.hashes(keys).view("i4").astype("i8").tolist()[0] % 1000 == one_by_one
