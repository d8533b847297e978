"""Builds the Spark session of a run: quiet, with the connectors that its pipelines need."""

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

from floodmark.checkpoint.conf_keys import JARS, MASTER
from floodmark.engine.pipelines.decorator import (
    connectors_named,
    connectors_named_in,
    connectors_reached,
)
from floodmark.engine.spark.cluster import not_started, require_master, say_when_alone
from floodmark.engine.spark.jars import needed
from floodmark.engine.spark.java import require_java
from floodmark.engine.spark.jvm import is_gone, kill, own_jvm, quiet_when_gone
from floodmark.errors import WrongUse, no_pyspark
from floodmark.progress import tell
from floodmark.secret_text import remember, remember_all, remember_environment

DELTA_CONF = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}


_set_by_code: set[str] = set()
"""Settings that the code gave to the builder which started this process's Spark. They apply to
the whole Spark, so every later session begins with them."""


@dataclass(frozen=True)
class SessionOptions:
    name: str
    needs: tuple[str, ...] = ()
    conf: Mapping[str, str] | None = None
    log: Path | None = None
    """The file for the JVM's log; None leaves the log on stderr."""
    stdout_to_stderr: bool = False
    """True where stdout belongs to a JSON document, so that a console sink must not write there."""


def spark_version() -> str:
    """Return the version of the pyspark that would run, without starting it."""
    try:
        from pyspark import __version__
    except ImportError:
        raise no_pyspark() from None
    version: str = __version__
    return version


def running_session() -> Any:
    """Return the session that this process already has, or None."""
    spark_version()
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    return SparkSession.builder.getOrCreate() if SparkContext._active_spark_context else None


def build_session(options: SessionOptions) -> Any:
    """Start a new session, in a JVM of its own."""
    version = spark_version()
    require_java(version)
    conf = settled_conf(options)
    tell("Spark is starting")
    with own_jvm(options.log, options.stdout_to_stderr):
        spark = _start(options.name, conf, options.log)
    tell("")
    quiet_when_gone(spark)
    say_when_alone(spark)
    return spark


@contextlib.contextmanager
def for_own_sessions(
    source: Path,
    code: str | None,
    conf: Mapping[str, str],
    log: Path | None,
    stdout_to_stderr: bool,
) -> Iterator[None]:
    """While an application is loaded, give the run's settings to a session that its code builds.

    The code's own settings win, as they do under spark-submit. `code` is the text of the file's
    code, where the file is not plain Python.
    """
    spark_version()
    name = f"floodmark: {source.stem}"

    def settled(given: dict[str, str]) -> dict[str, str]:
        _set_by_code.clear()
        _set_by_code.update(given)
        needs = connectors_named_in(source) if code is None else connectors_named(code)
        needs += connectors_reached(sys.argv[1:])  # a script's own arguments
        return settled_conf(SessionOptions(name, needs, {**conf, **given}))

    with own_jvm(log, stdout_to_stderr, settled):
        yield


def forget_other_code(session: Any, keep: Mapping[str, str]) -> None:
    """Remove the settings that another script has set for the whole Spark."""
    for key in _set_by_code - set(keep):
        if key.startswith("spark.sql.") and session.conf.isModifiable(key):
            session.conf.unset(key)


@contextlib.contextmanager
def active_session(session: Any, before: Any) -> Iterator[None]:
    """Make a session the active one and the builder's meanwhile; then restore `before`."""
    from pyspark.sql import SparkSession

    names = ("_instantiatedSession", "_activeSession")
    held = {name: getattr(SparkSession, name) for name in names if hasattr(SparkSession, name)}
    found = getattr(SparkSession, "_get_j_spark_session_class", None)
    jvm_class = found(before._jvm) if found is not None else before._jvm.SparkSession
    active = jvm_class.getActiveSession()
    try:
        for name in held:
            setattr(SparkSession, name, session)
        jvm_class.setDefaultSession(session._jsparkSession)
        jvm_class.setActiveSession(session._jsparkSession)
        yield
    finally:
        for name, value in held.items():
            setattr(SparkSession, name, value)
        jvm_class.setDefaultSession(before._jsparkSession)
        jvm_class.setActiveSession(active.get() if active.isDefined() else before._jsparkSession)


def settled_conf(options: SessionOptions) -> dict[str, str]:
    """Return the session's settings, with the connectors' jars and what these need."""
    remember_environment(os.environ)
    remember_all(options.conf or {})
    conf = dict(options.conf or {})
    require_master(conf)
    needs = dict.fromkeys((*options.needs, *connectors_reached(conf.values())))
    jars = needed(needs, conf)
    if "delta" in needs:
        for key, value in DELTA_CONF.items():
            conf.setdefault(key, value)
    if jars:
        own = conf.get(JARS)
        conf[JARS] = ",".join([*([own] if own else []), *(str(jar) for jar in jars)])
    conf.setdefault("spark.ui.showConsoleProgress", "false")
    if conf.get(MASTER, "local").startswith("local"):
        # Workers on this machine run this Python, not the first python3 of the PATH.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    return conf


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
        raise not_started(error, conf, log) from error
    except Exception as error:
        if type(error).__module__.startswith("py4j"):
            raise not_started(error, conf, log) from error
        raise


def require_settings(spark: Any, conf: Mapping[str, str]) -> None:
    """Refuse a session of the application whose settings differ from the requested ones."""
    found = spark.sparkContext.getConf()
    for key, value in conf.items():
        # spark.sql.* is set on the session before the query starts; Spark itself extends others.
        has = found.get(key) or ""
        added_to = key.endswith(("JavaOptions", ".jars"))
        if not (key.startswith("spark.sql.") or has == value or (added_to and value in has)):
            remember(key, has)
            option = "--master" if key == MASTER else f"--conf {key}"
            raise WrongUse(
                f"{option} says {value}, but the application's own session has "
                f"{has or 'no such setting'}",
                "The application builds a SparkSession and sets it there, and that setting wins.",
                "Remove it from the application's code, or use the session that the pipeline gets.",
            )


def end_session(spark: Any, by_force: bool = False) -> None:
    """Stop Spark; by force where a batch holds it, as stop() would wait for that batch."""
    if by_force:
        kill(spark)
    elif not is_gone(spark):
        spark.stop()


def new_log(name: str) -> Path:
    """Make a file for the JVM's log, which the caller keeps if the run fails."""
    try:
        handle, path = tempfile.mkstemp(prefix=f"floodmark-{name}-", suffix=".log")
    except OSError as error:
        raise WrongUse(
            f"cannot make Spark's log: {error}",
            do="Name a file: --spark-log FILE, or -.",
        ) from None
    os.close(handle)
    return Path(path)


@contextlib.contextmanager
def passing_log(name: str) -> Iterator[Path]:
    """Make a file for the JVM's log; it stays after an error, unless it is empty."""
    log = new_log(name)
    try:
        yield log
    except BaseException:
        if not log.stat().st_size:
            log.unlink()
        raise
    log.unlink()


def log_to(chosen: str | None, name: str) -> contextlib.AbstractContextManager[Path | None]:
    """Return the file for Spark's log: the named one, none for `-`, else a temporary one."""
    if chosen is None:
        return passing_log(name)
    return contextlib.nullcontext(None if chosen == "-" else Path(chosen))


@contextlib.contextmanager
def some_session(
    needs: tuple[str, ...] = (), conf: Mapping[str, str] | None = None
) -> Iterator[Any]:
    """Yield the session that this process has, or a new one that ends with the `with`."""
    running = running_session()
    if running is not None:
        yield running
        return
    with passing_log("floodmark") as log:
        spark = build_session(SessionOptions("floodmark", needs, conf, log, stdout_to_stderr=True))
        try:
            yield spark
        finally:
            spark.stop()
