"""Expressions of a plan as a person would write them, near enough to tell two apart. Pure."""

from __future__ import annotations

import json

from floodmark.checkpoint.plan.tree import (
    ABOVE,
    COLUMN,
    HIDDEN,
    LITERAL,
    NAMED,
    OUTPUT,
    SQL_VARIABLE,
    TEXTS,
    Expression,
)

_LONGEST = 400
_SIGNS = {
    "Add": "+",
    "Subtract": "-",
    "Multiply": "*",
    "Divide": "/",
    "Remainder": "%",
    "EqualTo": "=",
    "EqualNullSafe": "<=>",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
    "And": "AND",
    "Or": "OR",
}
_WRAPPERS = ("AggregateExpression", "KnownNullable", "PreciseTimestampConversion")
_NAMES = {
    "ApproximatePercentile": "percentile_approx",
    "Average": "avg",
    "BitAndAgg": "bit_and",
    "BitOrAgg": "bit_or",
    "BitXorAgg": "bit_xor",
    "CountMinSketchAgg": "count_min_sketch",
    "CovPopulation": "covar_pop",
    "CovSample": "covar_samp",
    "HyperLogLogPlusPlus": "approx_count_distinct",
    "ListAgg": "listagg",
    "VariancePop": "var_pop",
    "VarianceSamp": "var_samp",
}


def words(one: Expression, texts: bool = True) -> str:
    """Return the expression nearly as a person would write it, so that two can be told apart.

    Without `texts`, literals of the code are not repeated.
    """
    return _words(one, [_LONGEST], texts)


def _words(one: Expression, budget: list[int], texts: bool) -> str:
    budget[0] -= 1
    if budget[0] < 0:
        return "…"
    if one.name in (COLUMN, OUTPUT, "NamedLambdaVariable"):
        return one.label
    if one.name == LITERAL:
        return _literal(one, texts)
    if one.name == NAMED:
        return _words(one.children[0], budget, texts)
    if one.name == ABOVE:
        return f"{_words(one.children[0], budget, texts)} above the watermark"
    if one.name == SQL_VARIABLE and one.children:
        return f"{one.label} := {_words(one.children[0], budget, texts)}"
    inner = [_words(child, budget, texts) for child in one.children]
    if one.name in _SIGNS and len(inner) >= 2:
        return "(" + f" {_SIGNS[one.name]} ".join(inner) + ")"
    if one.name in _WRAPPERS and inner:
        distinct = "DISTINCT " if one.field("isDistinct") == "true" else ""
        where = f" FILTER (WHERE {inner[1]})" if len(inner) > 1 else ""
        return f"{distinct}{inner[0]}{where}"
    if one.name == "Cast":
        return f"cast({inner[0]} as {json.loads(one.field('dataType') or '{}')})"
    if one.name == "GetStructField":
        return f"{inner[0]}.{json.loads(one.field('name') or 'null') or one.field('ordinal')}"
    if one.name in ("PythonUDF", "PythonUDAF"):
        name = one.label or json.loads(one.field("name") or "0")
        return f"{name}({', '.join(inner)})"
    flags = [key for key, value in one.fields if value == "true" and key.startswith("ignore")]
    return f"{function_name(one)}({', '.join([*inner, *flags])})"


def function_name(one: Expression) -> str:
    """Return the name in SQL: `sum` for Sum, `collect_list` for CollectList."""
    if one.name in _NAMES:
        return _NAMES[one.name]
    return "".join(
        f"_{c.lower()}" if c.isupper() and at else c.lower() for at, c in enumerate(one.name)
    )


def _literal(one: Expression, texts: bool) -> str:
    value = json.loads(one.field("value") or "null")
    if value is None:
        return "NULL"
    if one.field("dataType") in TEXTS:
        return f"'{value}'" if texts and not str(value).startswith(HIDDEN) else "a text"
    return str(value)
