"""Merges rows whose keys became equal, with a user's function that Spark calls.

The function gets a key and its values, in no order, and returns one value. The result is checked
where it is made, as Spark itself turns a wrong type into a null.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from floodmark.errors import NotCarried

_MARK = "floodmark merge: "

Failed = Callable[[Exception], "NotCarried | None"]


def merged_by_function(
    rows: Any, function: Callable[[Any, Any], Any], where: str
) -> tuple[Any, Failed]:
    """Return the frame with one row for each key, and a reader of Spark's error messages."""
    from pyspark.sql import functions

    kind = rows.schema["value"].dataType
    merge = functions.udf(_checked(function, kind), kind, useArrow=False)
    grouped = rows.groupBy("key").agg(functions.collect_list("value").alias("values"))
    found = grouped.select("key", merge("key", "values").alias("value"))

    def failed(error: Exception) -> NotCarried | None:
        lines = [line for line in str(error).splitlines() if _MARK in line]
        if not lines:
            return None
        return NotCarried(
            f"{where}: merge {lines[-1].partition(_MARK)[2].strip()}",
            f"It gets a key and a list of values, and returns one value: {kind.simpleString()}.",
            "Nothing was written. Correct the function.",
        )

    return found, failed


def _checked(function: Callable[[Any, Any], Any], kind: Any) -> Callable[[Any, Any], Any]:
    from pyspark.sql.types import _make_type_verifier

    names = [field.name for field in kind.fields]
    verify = _make_type_verifier(kind, nullable=False)

    def merge(key: Any, values: Any) -> Any:
        if len(values) == 1:
            return values[0]
        shown = key.asDict(recursive=True)
        try:
            found = function(key, values)
        except Exception as error:
            raise ValueError(f"{_MARK}fails for {shown}: {type(error).__name__}: {error}") from None
        found = found.asDict() if hasattr(found, "asDict") else found
        if not isinstance(found, dict) or set(found) != set(names):
            raise ValueError(f"{_MARK}gives {found!r} for {shown}, not {', '.join(names)}")
        try:
            verify(found)
        except Exception as error:
            raise ValueError(f"{_MARK}gives {found!r} for {shown}: {error}") from None
        return tuple(found[name] for name in names)

    merge.__annotations__ = {}  # Spark would take the types for those of a vectorised function
    return merge
