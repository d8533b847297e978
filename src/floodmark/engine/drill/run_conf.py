"""Decides the Spark settings of a drilled run, and forces them on every session of the code."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from floodmark.checkpoint.conf_keys import DRIVER_JAVA_OPTIONS, MASTER, REMOTE, UI_ENABLED
from floodmark.engine.app.patching import Patches
from floodmark.engine.drill.doors.spark_doors import unseen
from floodmark.engine.drill.killing.driver import LOOPBACK, SMALL_JVM
from floodmark.engine.drill.killing.marks import SLOW
from floodmark.engine.drill.run_spec import RunSpec

_FORCED = {
    "spark.sql.catalogImplementation": "in-memory",
    UI_ENABLED: "false",
    "spark.databricks.delta.retentionDurationCheck.enabled": "true",
    "spark.eventLog.enabled": "false",
}
_GUARDED_WORKERS = {"spark.python.daemon.module": "floodmark.engine.drill.doors.worker_daemon"}


def run_conf(spec: RunSpec) -> dict[str, str]:
    small = SMALL_JVM if _own_conf(spec)[MASTER].startswith("local") else _seen_from_elsewhere()
    found = {**small, **spec.conf, **_own_conf(spec)}
    if spec.archive is not None:
        option = "SharedArchiveFile" if Path(spec.archive).exists() else "ArchiveClassesAtExit"
        own = f"-XX:+IgnoreUnrecognizedVMOptions -XX:{option}={spec.archive}"
        found[DRIVER_JAVA_OPTIONS] = f"{found[DRIVER_JAVA_OPTIONS]} {own}"
    return found


def _seen_from_elsewhere() -> dict[str, str]:
    """Return a cluster's settings: executors reach the driver's address, and slow rows down too."""
    found = {key: value for key, value in SMALL_JVM.items() if key not in LOOPBACK}
    slow = os.environ.get(SLOW)
    return found if slow is None else {**found, f"spark.executorEnv.{SLOW}": slow}


def _own_conf(spec: RunSpec) -> dict[str, str]:
    folder = Path(spec.folder)
    master = spec.conf.get(MASTER, "local[2]")
    return {
        **_FORCED,
        # A cluster's machines may not have the module.
        **(_GUARDED_WORKERS if master.startswith("local") else {}),
        MASTER: master,
        "spark.local.dir": str(folder / "local"),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
    }


def force_settings(patches: Patches, spec: RunSpec) -> None:
    """Set these for every session, also one that the code builds: tables are below the run."""
    from pyspark.sql import SparkSession

    def wrapper(original: Any) -> Any:
        def get_or_create(builder: Any) -> Any:
            if REMOTE in builder._options or "SPARK_REMOTE" in os.environ:
                raise unseen("a session of Spark Connect")
            for key, value in _own_conf(spec).items():
                builder.config(key, value)
            return original(builder)

        return get_or_create

    patches.wrap(SparkSession.Builder, "getOrCreate", wrapper)
