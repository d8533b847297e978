"""Aggregate functions, read from a plan's text."""

from __future__ import annotations

import pytest

from floodmark.changes.aggregates import aggregations, with_columns
from floodmark.state.ddl import struct_json
from floodmark.state.types import parse_struct

PLAN = """\
Project [k#3L, total#10]
+- ~Aggregate [k#3L, window#7-T60000ms], [k#3L, sum(value#1L) AS sum(value)#14L, count(1) AS n#13L\
, first(d#2, false) AS first(d)#144, (cast(sum(value#1L) as double) / cast(count(1) as double)) AS \
r#5, sum((value#1L + cast(1 as bigint))) AS sum((value + 1))#274L, sum(v#1) FILTER (WHERE \
(v#1 > 2)) AS f#9]
   +- ~Deduplicate [id#0]
      +- Aggregate [a#1], [a#1, max(b#2) AS max(b)#5]
"""


def test_functions_stand_once_and_in_order() -> None:
    assert aggregations(PLAN) == (
        (
            "sum(value)",
            "count(1)",
            "first(d, false)",
            "sum((value + cast(1 as bigint)))",
            "sum(v) FILTER (WHERE (v > 2))",
        ),
        ("max(b)",),
    )


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
    assert aggregations("Project [a#1]\n+- Filter (a#1 > 0)") == ()
