"""Digests the rows that code itself gives to a plan: createDataFrame and VALUES.

Spark's JSON has the columns of such a table and not its rows.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

from floodmark.engine.code.digests.pickled_code import python_digest
from floodmark.engine.spark.scala import jvm_field
from floodmark.errors import WrongUse

KINDS = ("LocalRelation", "LogicalRDD")


def rows_digest(leaf: Any) -> str | None:
    """Digest rows and columns in their order; return None where a job makes the rows.

    Running such a job could be expensive.
    """
    from py4j.protocol import Py4JError

    found = hashlib.sha256()
    try:
        found.update(str(leaf.schema().simpleString()).encode() + b"\n")
        if str(leaf.getClass().getSimpleName()) == "LocalRelation":
            found.update(str(leaf.data().mkString("\n")).encode())
            return found.hexdigest()
        steps = list(_steps(leaf.rdd()))
        given = steps.pop()
        if str(given.getClass().getSimpleName()) != "ParallelCollectionRDD":
            return None
        for step in steps:
            kind = str(step.getClass().getSimpleName())
            if kind == "PythonRDD":
                found.update(python_digest(jvm_field(step, "func")).encode())
            elif kind != "MapPartitionsRDD" or step.dependencies().size() != 1:
                return None
        chunks = list(_given_chunks(given))
    except (Py4JError, TypeError, WrongUse):
        return None
    for row in (row for chunk in chunks for row in _rows(chunk)):
        found.update(repr(row).encode() + b"\n")
    return found.hexdigest() if chunks else None


def _steps(rdd: Any) -> Iterator[Any]:
    """Yield the steps from the rows back to their data; Spark's own steps only change the form."""
    yield rdd
    while not rdd.dependencies().isEmpty():
        rdd = rdd.dependencies().head().rdd()
        yield rdd


def _given_chunks(rdd: Any) -> Iterator[bytes]:
    """Yield what Python gave to the JVM: pickled rows, in chunks that depend on the partitions."""
    for partition in rdd.partitions():
        values = partition.iterator()
        while values.hasNext():
            yield bytes(values.next())


def _rows(chunk: bytes) -> list[Any]:
    """Return the rows one by one: how many share a chunk depends on the machine's cores."""
    import pickle  # nosec B403

    try:
        # This process pickled it a moment ago: it is the code that is about to run.
        rows = pickle.loads(chunk)  # nosec B301
    except Exception:
        return [chunk]
    return rows if isinstance(rows, list) else [rows]
