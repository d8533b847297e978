"""Which exceptions of Java are storage's, and no mistake of the query's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from floodmark.engine.spark.hadoop import is_of_storage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
S3A = "org.apache.hadoop.fs.s3a.S3AFileSystem"


@pytest.mark.parametrize(
    ("kind", "thrown_in", "storage"),
    [
        ("java.io.FileNotFoundException", "org.apache.spark.sql.DataFrame", True),
        ("java.lang.NullPointerException", S3A, True),
        ("java.lang.NullPointerException", "org.apache.spark.sql.DataFrame", False),
        ("java.lang.IllegalArgumentException", "org.apache.hadoop.fs.Path", False),
        ("java.lang.NullPointerException", None, False),
        ("java.lang.NumberFormatException", S3A, True),
        ("java.lang.NumberFormatException", "org.apache.spark.sql.DataFrame", False),
        ("java.lang.NoSuchMethodError", S3A, False),
        ("java.lang.UnsupportedOperationException", S3A, False),
    ],
)
def test_what_is_of_storage(
    kind: str, thrown_in: str | None, storage: bool, spark: SparkSession
) -> None:
    assert is_of_storage(spark, _thrown(spark, kind, thrown_in)) == storage


def _thrown(spark: SparkSession, kind: str, thrown_in: str | None) -> Any:
    gateway: Any = spark.sparkContext._gateway
    jvm = gateway.jvm
    frames = gateway.new_array(jvm.java.lang.StackTraceElement, 1 if thrown_in else 0)
    if thrown_in:
        frames[0] = jvm.java.lang.StackTraceElement(thrown_in, "open", "File.java", 1)
    package, _, name = kind.rpartition(".")
    thrown = getattr(getattr(jvm.java, package.removeprefix("java.")), name)("no length")
    thrown.setStackTrace(frames)
    return thrown
