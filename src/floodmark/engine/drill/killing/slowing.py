"""Slows down the rows of a drilled query, so that its driver can be killed between them."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

from floodmark.engine.app.patching import Patches
from floodmark.engine.drill.killing.marks import SLOW


def slow_down(patches: Patches) -> None:
    """Add a filter that keeps every row, and waits as many milliseconds as the environment says.

    A task writes its state and its rows until its last row has come: the filter keeps that open.
    """
    DataFrame = _frame_class()  # noqa: N806

    # The filter runs in the JVM, as a Python worker would cost more than the rows. The JVM also
    # reads the duration: a filter that comes and goes would be another query under one state.
    asked = f"java_method('java.lang.System', 'getenv', '{SLOW}')"
    sleep = f"java_method('java.lang.Thread', 'sleep', coalesce(try_cast({asked} AS BIGINT), 0L))"
    original: Any = DataFrame.writeStream

    def write_stream(frame: Any) -> Any:
        # Not IS NOT NULL, which the optimizer knows to be true without a call.
        return original.fget(frame.where(f"coalesce({sleep}, 'slept') != ''"))

    patches.set(DataFrame, "writeStream", property(write_stream))


def _frame_class() -> Any:
    """Return the class whose writeStream is used: Spark 4 has one for each of its two APIs."""
    if importlib.util.find_spec("pyspark.sql.classic") is not None:
        return importlib.import_module("pyspark.sql.classic.dataframe").DataFrame
    return importlib.import_module("pyspark.sql.dataframe").DataFrame
