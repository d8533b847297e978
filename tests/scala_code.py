"""Scala inside the tests' own Spark: compiled by the compiler that lies among PySpark's jars.

What only Scala can say (flatMapGroupsWithState, transformWithState with case classes) is
made live without a Scala on the machine: `compiled` gives the package of a source's objects.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def compiled(
    spark: SparkSession, source: Path, folder: Path, beside_spark: Sequence[Path] = ()
) -> Any:
    """The package as py4j shows it; its classes are known to driver and (local) executors.

    `folder` keeps the classes: where it is already, nothing is compiled. `beside_spark` are jars
    that the source needs and the session was not started with.
    """
    import pyspark

    context = spark.sparkContext
    jvm, gateway = context._jvm, context._gateway
    assert jvm is not None
    if not folder.is_dir():
        beside = folder.with_name(f"{folder.name}.{os.getpid()}")
        beside.mkdir(parents=True)
        jars = Path(pyspark.__file__).parent / "jars" / "*"
        given = str(context.getConf().get("spark.jars") or "").split(",")
        path = os.pathsep.join([str(jars), *given, *map(str, beside_spark)])
        words = ["-d", str(beside), "-classpath", path, "-nowarn", str(source)]
        arguments = gateway.new_array(jvm.java.lang.String, len(words))
        for at, word in enumerate(words):
            arguments[at] = word
        assert jvm.scala.tools.nsc.Main.process(arguments), f"{source} does not compile"
        beside.rename(folder)
    # Spark's local executors ask this loader too, for it was there before they began.
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    for place in (*beside_spark, folder):
        loader.addURL(jvm.java.io.File(str(place)).toURI().toURL())
    return jvm.floodmark.scalacode
