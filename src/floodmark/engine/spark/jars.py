"""Resolves the jars that Spark needs in addition to its own for Kafka, Delta and S3.

Spark's own Ivy fetches them once into a cache. This module names every jar with its release,
and Ivy follows no dependencies: that takes seconds instead of minutes, and users get the
tested jars. Jars that a user or a cluster already has stay in use: see `needed`.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from floodmark.checkpoint.conf_keys import JARS
from floodmark.engine.spark.ivy import installed_spark, retrieve, spark_home
from floodmark.engine.spark.s3_jars import LINES, s3_coordinates
from floodmark.errors import FloodmarkError, WrongUse

CONNECTORS = ("kafka", "delta", "s3")

# One release of the connector for each line of Spark, not the exact release of the
# running Spark: a registry's mirror may not have Spark's newest release, and within a line
# the connector's own classes hardly change.
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
    # 4.3 is missing: it has no build of Delta, and the build for 4.2 fails there midway
    # (a NoSuchMethodError in its streaming source).
}
# How a connector is recognised among jars and packages that a user has chosen, and
# by which class in a JVM that already runs.
_ARTIFACT = {"kafka": "spark-sql-kafka-0-10_", "delta": "delta-spark_", "s3": "hadoop-aws"}
_CLASS = {
    "kafka": "org.apache.spark.sql.kafka010.KafkaSourceProvider",
    "delta": "org.apache.spark.sql.delta.sources.DeltaDataSource",
    "s3": "org.apache.hadoop.fs.s3a.S3AFileSystem",
}
_OWN_JARS = (JARS, "spark.jars.packages", "spark.driver.extraClassPath")


def coordinates(
    connector: str, spark_version: str | None = None, scala: str | None = None
) -> tuple[str, ...]:
    """Return `organisation:module:revision` of each jar, the connector's own first."""
    if connector not in CONNECTORS:
        raise WrongUse(
            f"no connector named {connector!r}",
            f"The connectors are {', '.join(CONNECTORS)}.",
            "Name your own jars in spark.jars or spark.jars.packages.",
        )
    if spark_version is None:
        spark = installed_spark()
        spark_version, scala = spark.version, scala or spark.scala
    line = _line(connector, spark_version)
    # Spark 3.5's PyPI package uses Scala 2.12, every later one 2.13.
    scala = scala or ("2.12" if line < (4, 0) else "2.13")
    makers = {"kafka": _kafka, "delta": _delta, "s3": s3_coordinates}
    return makers[connector](line, scala)


def resolve(connector: str, spark_version: str | None = None) -> tuple[Path, ...]:
    """Return the connector's jars on this disk; fetch those that are missing."""
    return _resolve(connector, spark_version, None)


def needed(connectors: Iterable[str], conf: Mapping[str, str]) -> list[Path]:
    """Return the jars to add to `spark.jars`: none for a connector that Spark already finds.

    `conf` is what the user has set for the session. Spark finds a connector when the user names it
    in spark.jars, spark.jars.packages or the class path (also in spark-defaults.conf or
    PYSPARK_SUBMIT_ARGS), when it is among Spark's own jars, or when the running JVM can load it.
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
            "Hadoop's S3 client must have exactly the release of Spark's Hadoop.",
            "Name it: --conf spark.jars.packages=org.apache.hadoop:hadoop-aws:VERSION, with the "
            f"version of hadoop-client-api in {spark_home() / 'jars'}.",
        )
    if line not in pinned:
        first, last = (".".join(map(str, known)) for known in (pinned[0], pinned[-1]))
        raise FloodmarkError(
            f"floodmark knows no {connector} connector for Spark {spark_version}",
            f"This release has connectors for Spark {first} to {last}.",
            "Use one of those, name your own connector in spark.jars.packages, "
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
    """Whether the JVM that this process already uses, if any, has the class."""
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
