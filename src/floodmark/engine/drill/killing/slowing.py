"""Holds rows of a drilled query up, so that there is time to kill its driver between them."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

from floodmark.engine.app.patching import Patches
from floodmark.engine.drill.killing.marks import SLOW


def slow_down(patches: Patches) -> None:
    """A filter that lets every row pass, after as many milliseconds as the environment says.

    A task writes its state and its rows until its last row has come: so that stays open.
    """
    DataFrame = _frame_class()  # noqa: N806

    # In the JVM: a Python worker would cost more than what is to be slowed down. How long is
    # asked there, too: a filter that comes and goes would be another query under one state.
    asked = f"java_method('java.lang.System', 'getenv', '{SLOW}')"
    sleep = f"java_method('java.lang.Thread', 'sleep', coalesce(try_cast({asked} AS BIGINT), 0L))"
    original: Any = DataFrame.writeStream

    def write_stream(frame: Any) -> Any:
        # Not IS NOT NULL, which the optimizer knows to be true without a call.
        return original.fget(frame.where(f"coalesce({sleep}, 'slept') != ''"))

    patches.set(DataFrame, "writeStream", property(write_stream))


def _frame_class() -> Any:
    """The class whose writeStream is used: Spark 4 has one for each of its two APIs."""
    if importlib.util.find_spec("pyspark.sql.classic") is not None:
        return importlib.import_module("pyspark.sql.classic.dataframe").DataFrame
    return importlib.import_module("pyspark.sql.dataframe").DataFrame
