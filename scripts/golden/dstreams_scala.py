"""DStreams as Scala writes them: mapWithState, a case class as state, a receiver with a log."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pyspark
from pyspark.sql import SparkSession
from scripts.golden.drive import write_expected
from scripts.golden.dstreams import as_recovered
from scripts.golden.place import ROOT, Place
from scripts.golden.unending import until

_SOURCE = Path(__file__).with_name("DStreamsInScala.scala")


def make_dstreams_scala(spark: SparkSession) -> None:
    place = Place("dstreams-scala")
    place.clear()
    code = _compiled(spark)
    conf = spark.sparkContext._jsc.sc().conf()
    conf.set("spark.io.compression.codec", "snappy")
    conf.set("spark.streaming.receiver.writeAheadLog.enable", "true")
    context = code.context(spark.sparkContext._jsc.sc(), str(place.input()), str(place.checkpoint))
    context.start()
    for number, lines in enumerate(("c1,10.5\nc2,4.0\n", "c1,1.5\nZoë,7.25\n")):
        beside = place.folder / "lines"
        beside.write_text(lines, encoding="utf-8")
        beside.rename(place.input() / f"{number}.csv")
        until(partial(_is_summed, code, (10.5, 12.0)[number]), "the orders were not summed")
    until(lambda: code.visitsOf("c1") == "(2,12.0)", "the visits were not counted")
    until(lambda: _saved_since(place), "the state was not saved")
    context.stop(False, True)
    place.keep()
    write_expected(
        place,
        {
            "spark": spark.version,
            "scenario": "dstreams-scala",
            "about": "mapWithState and updateStateByKey of a case class over text files, batches "
            "of 1 second; a receiver with a write-ahead log; snappy",
            "kind": "dstreams",
            "visits": {"c1": [2, 12.0], "c2": [1, 4.0], "Zoë": [1, 7.25]},
            **as_recovered(spark, place),
        },
    )


def _is_summed(code: Any, wanted: float) -> bool:
    return bool(code.sumOf("c1") == wanted)


def _saved_since(place: Place) -> bool:
    """State of both streams, saved after the last file was taken."""
    newest = max(path.stat().st_mtime for path in place.input().iterdir())
    saved = list(place.checkpoint.glob("*/rdd-*/part-00001"))
    return sum(path.stat().st_mtime > newest + 1.5 for path in saved) >= 2


def _compiled(spark: SparkSession) -> Any:
    """By the compiler that lies among PySpark's jars."""
    jvm, gateway = spark.sparkContext._jvm, spark.sparkContext._gateway
    assert jvm is not None
    folder = ROOT / "scala-classes"
    folder.mkdir(exist_ok=True)
    jars = Path(pyspark.__file__).parent / "jars" / "*"
    words = ["-d", str(folder), "-classpath", str(jars), "-nowarn", str(_SOURCE)]
    arguments = gateway.new_array(jvm.java.lang.String, len(words))
    for at, word in enumerate(words):
        arguments[at] = word
    assert jvm.scala.tools.nsc.Main.process(arguments), "the Scala code does not compile"
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    loader.addURL(jvm.java.io.File(str(folder)).toURI().toURL())
    return jvm.floodmark.golden.DStreamsInScala
