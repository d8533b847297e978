"""The jars that Spark needs beside its own to speak Kafka, Delta and S3.

They are fetched once by Spark's own Ivy into a cache and found there ever after.
Every jar is named here with its release, and Ivy follows no dependency of any: that
takes seconds instead of minutes, and what was tested is what a user gets. A user who
brings jars of their own, or a cluster that has them, keeps those: see `needed`.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from floodmark.engine.spark.ivy import installed_spark, retrieve, spark_home
from floodmark.engine.spark.s3_jars import LINES, s3_coordinates
from floodmark.errors import FloodmarkError, WrongUse

CONNECTORS = ("kafka", "delta", "s3")

# One release of the connector a line of Spark, rather than the very release of the
# running Spark: a registry's mirror may lag behind Spark's newest, and within a line
# the connector's own classes hardly move.
_KAFKA = {
    # Spark: (connector, token provider, kafka-clients, commons-pool2)
    (3, 5): ("3.5.7", "3.5.0", "3.4.1", "2.11.1"),
    (4, 0): ("4.0.4", "4.0.0", "3.9.1", "2.12.0"),
    (4, 1): ("4.1.3", "4.0.0", "3.9.1", "2.12.1"),
    (4, 2): ("4.2.0", "4.0.0", "3.9.2", "2.13.1"),
    (4, 3): ("4.2.0", "4.0.0", "3.9.2", "2.13.1"),
}
_DELTA = {
    # Spark: (the name's infix, Delta's release)
    (3, 5): ("", "3.3.3"),
    (4, 0): ("4.0_", "4.4.0"),
    (4, 1): ("4.1_", "4.4.0"),
    (4, 2): ("4.2_", "4.4.0"),
    # Not 4.3: there was no build for it, and the build for 4.2 fails there midway
    # (a NoSuchMethodError in its streaming source).
}
# How a connector is recognised among jars and packages that a user has chosen, and
# by which class in a JVM that runs already.
_ARTIFACT = {"kafka": "spark-sql-kafka-0-10_", "delta": "delta-spark_", "s3": "hadoop-aws"}
_CLASS = {
    "kafka": "org.apache.spark.sql.kafka010.KafkaSourceProvider",
    "delta": "org.apache.spark.sql.delta.sources.DeltaDataSource",
    "s3": "org.apache.hadoop.fs.s3a.S3AFileSystem",
}
_OWN_JARS = ("spark.jars", "spark.jars.packages", "spark.driver.extraClassPath")


def coordinates(
    connector: str, spark_version: str | None = None, scala: str | None = None
) -> tuple[str, ...]:
    """`organisation:module:revision` of each jar, the connector's own first."""
    if connector not in CONNECTORS:
        raise WrongUse(
            f"no connector named {connector!r}",
            f"There are {', '.join(CONNECTORS)}.",
            "Name jars of your own in spark.jars or spark.jars.packages.",
        )
    if spark_version is None:
        spark = installed_spark()
        spark_version, scala = spark.version, scala or spark.scala
    line = _line(connector, spark_version)
    # Spark 3.5's PyPI package is built with Scala 2.12, everything since with 2.13.
    scala = scala or ("2.12" if line < (4, 0) else "2.13")
    makers = {"kafka": _kafka, "delta": _delta, "s3": s3_coordinates}
    return makers[connector](line, scala)


def resolve(connector: str, spark_version: str | None = None) -> tuple[Path, ...]:
    """The connector's jars on this disk, fetched when they are not there yet."""
    return _resolve(connector, spark_version, None)


def needed(connectors: Iterable[str], conf: Mapping[str, str]) -> list[Path]:
    """The jars to add to `spark.jars`: none for a connector that Spark finds anyway.

    `conf` is what the user has set for the session. A connector counts as there when
    the user names it in spark.jars, spark.jars.packages or the class path (also in
    spark-defaults.conf or PYSPARK_SUBMIT_ARGS), when it lies among Spark's own jars,
    or when the JVM that runs already can load it.
    """
    settings = {**_spark_defaults(), **conf}
    ivy_settings = settings.get("spark.jars.ivySettings")
    return [
        jar
        for connector in connectors
        if not _present(connector, settings)
        for jar in _resolve(connector, None, ivy_settings)
    ]


def cache_folder() -> Path:
    chosen = os.environ.get("FLOODMARK_CACHE")
    if chosen:
        return Path(chosen).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "floodmark"


def _resolve(
    connector: str, spark_version: str | None, ivy_settings: str | None
) -> tuple[Path, ...]:
    scala = None
    if spark_version is None:
        spark = installed_spark()
        spark_version, scala = spark.version, spark.scala
    return retrieve(
        coordinates(connector, spark_version, scala),
        cache_folder() / "jars" / spark_version / connector,
        label=f"{connector} connector for Spark {spark_version}",
        ivy_settings=ivy_settings,
    )


def _line(connector: str, spark_version: str) -> tuple[int, int]:
    match = re.match(r"(\d+)\.(\d+)", spark_version)
    line = (int(match[1]), int(match[2])) if match else (0, 0)
    pinned = sorted({"kafka": tuple(_KAFKA), "delta": tuple(_DELTA), "s3": LINES}[connector])
    if line not in pinned and connector == "s3":
        raise FloodmarkError(
            f"floodmark fetches no jars with which Spark {spark_version} reaches S3",
            "Hadoop's client for S3 has to be of the very release of Spark's Hadoop.",
            "Name it: --conf spark.jars.packages=org.apache.hadoop:hadoop-aws:VERSION, with the "
            f"version of hadoop-client-api in {spark_home() / 'jars'}.",
        )
    if line not in pinned:
        first, last = (".".join(map(str, known)) for known in (pinned[0], pinned[-1]))
        raise FloodmarkError(
            f"no {connector} connector is known for Spark {spark_version}",
            f"This floodmark has one for Spark {first} to {last}.",
            "Use one of those, name a connector of your own in spark.jars.packages, "
            "or look for a newer floodmark.",
        )
    return line


def _kafka(line: tuple[int, int], scala: str) -> tuple[str, ...]:
    connector, token_provider, clients, pool = _KAFKA[line]
    return (
        f"org.apache.spark:spark-sql-kafka-0-10_{scala}:{connector}",
        f"org.apache.spark:spark-token-provider-kafka-0-10_{scala}:{token_provider}",
        f"org.apache.kafka:kafka-clients:{clients}",
        f"org.apache.commons:commons-pool2:{pool}",
    )


def _delta(line: tuple[int, int], scala: str) -> tuple[str, ...]:
    infix, release = _DELTA[line]
    modules = [f"delta-spark_{infix}{scala}", "delta-storage"]
    if line >= (4, 0):
        modules += ["delta-kernel-api", "delta-kernel-defaults", "delta-kernel-unitycatalog"]
    return tuple(f"io.delta:{module}:{release}" for module in modules)


def _present(connector: str, settings: Mapping[str, str]) -> bool:
    artifact = _ARTIFACT[connector]
    chosen = [settings.get(key, "") for key in _OWN_JARS]
    chosen.append(os.environ.get("PYSPARK_SUBMIT_ARGS", ""))
    if any(artifact in text for text in chosen):
        return True
    folders = [installed_spark().jars]
    # A class path entry `folder/*` stands for every jar of the folder.
    for entry in settings.get("spark.driver.extraClassPath", "").split(os.pathsep):
        if entry.endswith("*"):
            folders.append(Path(entry[:-1]))
    if any(any(folder.glob(f"{artifact}*.jar")) for folder in folders):
        return True
    return _loadable(_CLASS[connector])


def _loadable(name: str) -> bool:
    """Whether the JVM that this process drives already, if any, has the class."""
    pyspark = sys.modules.get("pyspark")
    jvm = getattr(getattr(pyspark, "SparkContext", None), "_jvm", None)
    if jvm is None:
        return False
    from py4j.protocol import Py4JError

    try:
        jvm.java.lang.Thread.currentThread().getContextClassLoader().loadClass(name)
    except Py4JError:
        return False
    return True


def _spark_defaults() -> dict[str, str]:
    folder = os.environ.get("SPARK_CONF_DIR")
    path = (Path(folder) if folder else spark_home() / "conf") / "spark-defaults.conf"
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError:
        return {}
    pairs = (re.split(r"[\s=:]+", line.strip(), maxsplit=1) for line in lines)
    return {pair[0]: pair[1] for pair in pairs if len(pair) == 2 and not pair[0].startswith("#")}
