"""The Spark session that the scenarios share: small, quiet, and free of this machine's names."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import SparkSession
from scripts.golden.place import ROOT


def session(more: Mapping[str, str] | None = None) -> SparkSession:
    builder = (
        SparkSession.builder.master("local[2]")
        .appName("floodmark-golden")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.memory", "1g")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.warehouse.dir", str(ROOT / "warehouse"))
        # Snapshots are made by a task in the background; one scenario waits for it.
        .config("spark.sql.streaming.stateStore.maintenanceInterval", "500ms")
    )
    for key, value in (more or {}).items():
        builder = builder.config(key, value)
    spark: SparkSession = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    return spark
