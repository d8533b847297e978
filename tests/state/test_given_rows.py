"""Rows as a function gives them become the rows that a store keeps, and the other way round."""

from __future__ import annotations

import pyarrow as pa

from floodmark.state.rows.ddl import struct_json
from floodmark.state.rows.given_rows import (
    gathered,
    given_key,
    given_value,
    identity,
    kept,
)
from floodmark.state.rows.types import arrow_type, ddl
from floodmark.state.shapes.operators import Reading, Shape
from floodmark.state.shapes.schema import ColumnFamily

MAP_KEY = "key STRUCT<k: STRING>, userKey STRUCT<city: STRING>"


def reading(shape: Shape, key: str, value: str) -> Reading:
    family = ColumnFamily("mine", struct_json(key), struct_json(value))
    return Reading("mine", "default", "mine", shape, family)


def test_the_elements_of_a_list_are_one_row_in_their_order() -> None:
    one = reading(Shape.LIST, "k STRING", "v BIGINT NOT NULL")
    assert ddl(given_value(one)) == "elements ARRAY<STRUCT<v: BIGINT NOT NULL>> NOT NULL"
    stored_keys = pa.array([{"k": k} for k in "aab"], arrow_type(given_key(one)))
    stored = pa.array([{"v": v} for v in (3, 1, 2)], pa.struct([("v", pa.int64())]))
    keys, values = gathered(one, *one.show(stored_keys, stored))
    assert keys.to_pylist() == [{"k": "a"}, {"k": "b"}]
    assert values.to_pylist() == [{"elements": [{"v": 3}, {"v": 1}]}, {"elements": [{"v": 2}]}]
    back = kept(one, keys, values)
    assert back[0].to_pylist() == stored_keys.to_pylist()
    assert back[1].to_pylist() == stored.to_pylist()


def test_an_empty_list_is_no_list() -> None:
    one = reading(Shape.LIST, "k STRING", "v BIGINT")
    keys = pa.array([{"k": "a"}, {"k": "b"}], arrow_type(given_key(one)))
    values = pa.array([{"elements": []}, {"elements": [{"v": 1}]}], arrow_type(given_value(one)))
    found = kept(one, keys, values)
    assert found[0].to_pylist() == [{"k": "b"}]
    assert found[1].to_pylist() == [{"v": 1}]


def test_an_entry_of_a_map_is_a_row_and_known_by_both_keys() -> None:
    one = reading(Shape.MAP, MAP_KEY, "n BIGINT")
    assert ddl(given_key(one)) == "k STRING"
    assert [field.name for field in identity(one).fields] == ["key", "userKey"]
    keys = pa.array([{"k": "a"}, {"k": "a"}], arrow_type(given_key(one)))
    rows = [
        {"user_map_key": {"city": city}, "user_map_value": {"n": n}}
        for city, n in (("x", 1), ("y", 2))
    ]
    values = pa.array(rows, arrow_type(given_value(one)))
    stored = kept(one, keys, values)
    assert stored[0].to_pylist() == [
        {"key": {"k": "a"}, "userKey": {"city": "x"}},
        {"key": {"k": "a"}, "userKey": {"city": "y"}},
    ]
    assert one.show(*stored)[0].to_pylist() == keys.to_pylist()
    assert one.show(*stored)[1].to_pylist() == rows


def test_other_rows_are_what_they_are() -> None:
    one = reading(Shape.PAIRS, "k STRING", "n BIGINT")
    keys = pa.array([{"k": "a"}], arrow_type(given_key(one)))
    values = pa.array([{"n": 1}], arrow_type(given_value(one)))
    assert gathered(one, keys, values) == (keys, values) == kept(one, keys, values)
    assert identity(one) == given_key(one)
