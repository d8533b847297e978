"""Knows the aggregate functions of a query, and the columns of state that they keep. Pure.

Spark names the columns of an aggregation's state `sum`, `count`, `max`: only the plan says which
sum is which. Spark keeps them in the order in which the functions appear in the Aggregate's
output, each once.
"""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.changes.matching.shapes import Aggregate
from floodmark.checkpoint.plan.tree import Expression, PlanTree
from floodmark.state.rows.types import Struct

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


def aggregations(tree: PlanTree) -> tuple[tuple[Expression, ...], ...]:
    """Return the functions of each aggregation with state, the one nearest the sink first."""
    return tuple(one.role("functions") for one in tree.stateful if one.kind == "Aggregate")


def with_columns(functions: tuple[str, ...], value: Struct) -> tuple[Aggregate, ...] | None:
    """Return the functions with their numbers of columns, if these make up a value's end."""
    names = value.names
    for taken in _fits(functions, names[::-1]):
        return tuple(
            Aggregate(function, count)
            for function, count in zip(functions, reversed(taken), strict=True)
        )
    return None


def _fits(functions: tuple[str, ...], names: tuple[str, ...]) -> Iterator[tuple[int, ...]]:
    """Yield the ways to map the functions to the names, both from the last to the first."""
    if not functions:
        yield ()
        return
    name = functions[-1].partition("(")[0]
    # Do not guess the columns of a function that is not in the table.
    for columns in _COLUMNS.get(name, ()):
        count = len(columns)
        if names[:count] == columns[::-1]:
            for rest in _fits(functions[:-1], names[count:]):
                yield (count, *rest)
