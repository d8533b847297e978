"""The Spark session that a run uses: quiet, with the connectors that its pipelines need."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from floodmark.engine.connectors import needed
from floodmark.engine.java import require_java
from floodmark.errors import FloodmarkError, WrongUse

DELTA_CONF = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}


@dataclass(frozen=True)
class SessionWish:
    name: str
    needs: tuple[str, ...] = ()
    conf: Mapping[str, str] | None = None
    log: Path | None = None
    """Where the JVM's log goes; None leaves it on stderr."""
    stdout_to_stderr: bool = False
    """True where stdout belongs to a JSON document, and a console sink must not write there."""


def spark_version() -> str:
    """Of the pyspark that would run, without starting it."""
    try:
        from pyspark import __version__
    except ImportError:
        raise WrongUse(
            "pyspark is not installed",
            "Running a stream needs it; reading a checkpoint does not.",
            "Install it: pip install 'floodmark[spark]'",
        ) from None
    version: str = __version__
    return version


def running_session() -> Any:
    """The session that this process already has, or None."""
    spark_version()
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    return SparkSession.builder.getOrCreate() if SparkContext._active_spark_context else None


def build_session(wish: SessionWish) -> Any:
    """A new session, in a JVM of its own."""
    version = spark_version()
    require_java(version)
    conf = dict(wish.conf or {})
    jars = needed(wish.needs, conf)
    if "delta" in wish.needs:
        for key, value in DELTA_CONF.items():
            conf.setdefault(key, value)
    if jars:
        own = conf.get("spark.jars")
        conf["spark.jars"] = ",".join([*([own] if own else []), *(str(jar) for jar in jars)])
    conf.setdefault("spark.ui.showConsoleProgress", "false")
    if conf.get("spark.master", "local").startswith("local"):
        # Workers of this machine run this Python, not whichever python3 the PATH finds.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    with _jvm_output(wish.log, wish.stdout_to_stderr):
        return _start(wish.name, conf, wish.log)


def _start(name: str, conf: Mapping[str, str], log: Path | None) -> Any:
    if log is not None:
        warnings.filterwarnings("ignore", module=r"pyspark\..*")
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName(name)
    for key, value in conf.items():
        builder = builder.config(key, value)
    try:
        return builder.getOrCreate()
    except (PySparkException, OSError, RuntimeError) as error:
        where = f"Spark's log is {log}." if log else ""
        raise WrongUse(f"Spark does not start: {_first_line(error)}", where) from error
    except Exception as error:
        if type(error).__module__.startswith("py4j"):
            where = f"Spark's log is {log}." if log else ""
            raise WrongUse(f"Spark does not start: {_first_line(error)}", where) from error
        raise


def end_session(spark: Any, by_force: bool = False) -> None:
    """Stops Spark. By force where a batch holds it: its stop() would wait for that batch."""
    jvm = getattr(spark.sparkContext._gateway, "proc", None)
    if not by_force:
        spark.stop()
    elif jvm is not None:  # else it is not our child, and ends when we do
        jvm.kill()
        jvm.wait()


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    useful = [line for line in lines if not line.startswith(("An error occurred", "at "))]
    return (useful or lines or [type(error).__name__])[0].lstrip(": ")


def new_log(name: str) -> Path:
    """A file for the JVM's log, kept by the caller if the run fails."""
    handle, path = tempfile.mkstemp(prefix=f"floodmark-{name}-", suffix=".log")
    os.close(handle)
    return Path(path)


@contextlib.contextmanager
def passing_log(name: str) -> Iterator[Path]:
    """A file for the JVM's log, which stays where what it is for fails, and it says something."""
    log = new_log(name)
    try:
        yield log
    except BaseException:
        if not log.stat().st_size:
            log.unlink()
        raise
    log.unlink()


@contextlib.contextmanager
def some_session(
    needs: tuple[str, ...] = (), conf: Mapping[str, str] | None = None
) -> Iterator[Any]:
    """The session that this process has, or a new one for as long as the `with`."""
    running = running_session()
    if running is not None:
        yield running
        return
    with passing_log("floodmark") as log:
        spark = build_session(SessionWish("floodmark", needs, conf, log, stdout_to_stderr=True))
        try:
            yield spark
        finally:
            spark.stop()


@contextlib.contextmanager
def _jvm_output(log: Path | None, stdout_to_stderr: bool) -> Iterator[None]:
    """The JVM inherits our descriptors when it starts, so they point elsewhere meanwhile."""
    moves: list[tuple[int, int]] = []
    try:
        sys.stdout.flush()
        sys.stderr.flush()
        if stdout_to_stderr:
            moves.append((1, os.dup(1)))
            os.dup2(2, 1)
        if log is not None:
            target = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            moves.append((2, os.dup(2)))
            os.dup2(target, 2)
            os.close(target)
        yield
    except OSError as error:
        raise FloodmarkError(f"cannot redirect Spark's log: {error}") from error
    finally:
        for descriptor, saved in reversed(moves):
            os.dup2(saved, descriptor)
            os.close(saved)
