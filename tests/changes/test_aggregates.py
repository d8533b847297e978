"""Aggregate functions of a plan, and the columns that they keep."""

from __future__ import annotations

import pytest

from floodmark.changes.matching.aggregates import aggregations, with_columns
from floodmark.checkpoint.plan.words import words
from floodmark.state.rows.ddl import struct_json
from floodmark.state.rows.types import parse_struct
from plan_trees import of_step, plan


def test_functions_stand_once_and_in_order() -> None:
    functions = ("sum(value)", "count(1)", "first(d)", "sum(add(value, 1))")
    found = aggregations(plan(functions))
    assert [[words(one) for one in all_] for all_ in found] == [
        ["sum(value)", "count(1)", "first(d)", "sum((value + 1))"]
    ]


@pytest.mark.parametrize(
    ("functions", "value", "columns"),
    [
        (("sum(a)", "count(1)"), "sum BIGINT, count BIGINT", (1, 1)),
        (("avg(a)",), "sum DOUBLE, count BIGINT", (2,)),
        (("sum(d)", "max(d)"), "sum DECIMAL(20,2), isEmpty BOOLEAN, max DECIMAL(10,2)", (2, 1)),
        (("count(1)",), "session_window STRUCT<start: TIMESTAMP>, k STRING, count BIGINT", (1,)),
        (("sum(a)",), "count BIGINT", None),
        (("collect_list(a)",), "buf BINARY", (1,)),
    ],
)
def test_columns_of_functions(
    functions: tuple[str, ...], value: str, columns: tuple[int, ...] | None
) -> None:
    found = with_columns(
        functions, parse_struct(struct_json(value.replace("sum BIG", "`sum` BIG")))
    )
    assert (None if found is None else tuple(one.columns for one in found)) == columns


def test_a_plan_without_aggregates_has_none() -> None:
    assert aggregations(of_step("Deduplicate", keys=("a",))) == ()


def test_what_an_unknown_function_keeps_is_not_guessed() -> None:
    value = parse_struct(struct_json("count BIGINT, `sum` BIGINT"))
    assert with_columns(("regr_count(a, b)", "sum(c)"), value) is None
