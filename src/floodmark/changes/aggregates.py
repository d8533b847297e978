"""The aggregate functions of a query, read from its plan's text. Pure.

Spark calls the columns of an aggregation's state `sum`, `count`, `max`: only the plan says
which sum is which. Spark keeps them in the order in which the functions appear in the
Aggregate's output, each once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from floodmark.changes.shapes import Aggregate
from floodmark.state.types import Struct

_COLUMNS: dict[str, tuple[tuple[str, ...], ...]] = {
    "sum": (("sum", "isEmpty"), ("sum",)),
    "try_sum": (("sum", "isEmpty"), ("sum",)),
    "avg": (("sum", "count"),),
    "try_avg": (("sum", "count"),),
    "mean": (("sum", "count"),),
    "count": (("count",),),
    "min": (("min",),),
    "max": (("max",),),
    "first": (("first", "valueSet"),),
    "first_value": (("first", "valueSet"),),
    "any_value": (("first", "valueSet"),),
    "last": (("last", "valueSet"),),
    "last_value": (("last", "valueSet"),),
    "max_by": (
        ("valueWithMaxOrdering", "maxOrdering"),
        ("valueWithExtremumOrdering", "maxOrdering"),
        ("valueWithExtremumOrdering", "extremumOrdering"),
    ),
    "min_by": (
        ("valueWithMinOrdering", "minOrdering"),
        ("valueWithExtremumOrdering", "minOrdering"),
        ("valueWithExtremumOrdering", "extremumOrdering"),
    ),
    **dict.fromkeys(("bool_and", "every"), (("min",),)),
    **dict.fromkeys(("bool_or", "some", "any"), (("max",),)),
    "count_if": (("count",),),
    "bit_and": (("bit_and",),),
    "bit_or": (("bit_or",),),
    "bit_xor": (("bit_xor",),),
    "product": (("product",),),
    **dict.fromkeys(
        ("stddev", "stddev_samp", "stddev_pop", "std", "variance", "var_samp", "var_pop"),
        (("n", "avg", "m2"),),
    ),
    "skewness": (("n", "avg", "m2", "m3"),),
    "kurtosis": (("n", "avg", "m2", "m3", "m4"),),
    "corr": (("n", "xAvg", "yAvg", "ck", "xMk", "yMk"),),
    "covar_pop": (("n", "xAvg", "yAvg", "ck"),),
    "covar_samp": (("n", "xAvg", "yAvg", "ck"),),
    "approx_count_distinct": (tuple(f"MS[{at}]" for at in range(52)),),
    **dict.fromkeys(
        (
            "collect_list",
            "collect_set",
            "percentile",
            "percentile_approx",
            "approx_percentile",
            "median",
            "mode",
            "histogram_numeric",
            "count_min_sketch",
            "bitmap_construct_agg",
            "hll_sketch_agg",
            "listagg",
            "string_agg",
        ),
        (("buf",),),
    ),
}
_CALL = re.compile(r"(?<![\w`.#])([a-z_]+)\(")
_NUMBER = re.compile(r"#\d+L?|-T\d+ms")
_ALIAS = re.compile(r" AS .+?#\d+L?(?:-T\d+ms)?(?=[,\])]|$)")
_AGGREGATE = re.compile(r"\bAggregate \[")


def aggregations(plan: str) -> tuple[tuple[str, ...], ...]:
    """The aggregate functions of each Aggregate in an analysed plan, nearest the sink first."""
    found = []
    for line in plan.splitlines():
        match = _AGGREGATE.search(line)
        if match is None:
            continue
        start = _closing(line, match.end() - 1, "[", "]")
        # An alias may look like a function: `sum(v#1) AS sum(v)#2`.
        outputs = _ALIAS.sub("", line[start + 1 :])
        found.append(tuple(dict.fromkeys(_functions(outputs))))
    return tuple(found)


def _functions(text: str) -> Iterator[str]:
    at = 0
    while match := _CALL.search(text, at):
        if match[1] not in _COLUMNS:
            at = match.end()
            continue
        end = _closing(text, match.end() - 1, "(", ")")
        call = text[match.start() : end + 1]
        rest = text[end + 1 :]
        if rest.startswith(" FILTER ("):
            close = _closing(rest, len(" FILTER "), "(", ")")
            call += rest[: close + 1]
            end += close + 1
        yield plain_function(call)
        at = end + 1


def plain_function(text: str) -> str:
    """Without the numbers that Spark gives columns anew in every plan."""
    return _NUMBER.sub("", text)


def _closing(text: str, at: int, opening: str, closing: str) -> int:
    depth = 0
    for place in range(at, len(text)):
        if text[place] == opening:
            depth += 1
        elif text[place] == closing:
            depth -= 1
            if depth == 0:
                return place
    return len(text) - 1


def with_columns(functions: tuple[str, ...], value: Struct) -> tuple[Aggregate, ...] | None:
    """The functions with how many columns each has, if just these make up a value's end."""
    names = value.names
    for taken in _fits(functions, names[::-1]):
        return tuple(
            Aggregate(function, count)
            for function, count in zip(functions, reversed(taken), strict=True)
        )
    return None


def _fits(functions: tuple[str, ...], names: tuple[str, ...]) -> Iterator[tuple[int, ...]]:
    """Ways to lay the functions, last first, over the names, last first."""
    if not functions:
        yield ()
        return
    name = functions[-1].partition("(")[0]
    for columns in _COLUMNS[name]:
        count = len(columns)
        if names[:count] == columns[::-1]:
            for rest in _fits(functions[:-1], names[count:]):
                yield (count, *rest)
