"""Starts this process's JVM in a session of its own, so that signals reach only Python.

A terminal, systemd and a shell as process 1 send SIGTERM or SIGINT to a whole process group. A
JVM in that group would end before its batch does. This JVM does not get these signals; it ends
when Python says so, or when Python has ended and its standard input is closed.
"""

from __future__ import annotations

import contextlib
import importlib
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from threading import Thread
from typing import Any

from floodmark.checkpoint.text import shorten
from floodmark.errors import WrongUse

_REAPED_WITHIN_SECONDS = 30.0
_ENDED_WITHIN_SECONDS = 3.0
_TAIL_BYTES = 64 * 1024
_PY4J_BROKEN = "Exception while sending command."
_OUT_OF_MEMORY = "OutOfMemoryError"
# Spark's own exit status, SparkExitCode.OOM.
_OUT_OF_MEMORY_STATUS = 52
# Spark's launcher passes the first to its JVM, Spark's script the second to the launcher's JVM.
_JVM_OPTIONS = ("SPARK_SUBMIT_OPTS", "SPARK_LAUNCHER_OPTS")
# For batches of a few rows in a cold JVM: compiling their code takes longer than running it.
NOT_COMPILED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
_LIGHT_COMPILER = "-XX:TieredStopAtLevel=1"
# Five times HotSpot's defaults: in a few batches most methods never get hot enough to repay the
# optimizing compiler. The loops of a large batch still do, some thousand rows later.
_LATE_COMPILER = (
    "-XX:Tier4InvocationThreshold=25000 -XX:Tier4MinInvocationThreshold=3000 "
    "-XX:Tier4CompileThreshold=75000 -XX:Tier4BackEdgeThreshold=200000"
)


@contextlib.contextmanager
def own_jvm(
    log: Path | None,
    stdout_to_stderr: bool,
    settled: Callable[[dict[str, str]], Mapping[str, str]] = dict,
) -> Iterator[None]:
    """While this is open, every new session gets such a JVM, also one that the application builds.

    `settled` turns the code's settings into the settings with which the JVM starts.
    """
    from pyspark import SparkConf, SparkContext

    context: Any = sys.modules[SparkContext.__module__]
    original = context.launch_gateway

    def launch(code_conf: Any = None) -> Any:
        given = dict(code_conf.getAll()) if code_conf is not None else {}
        settings = SparkConf(loadDefaults=False)
        for key, value in settled(given).items():
            settings.set(key, value)
        return _launch(original, settings, log, stdout_to_stderr)

    context.launch_gateway = launch
    try:
        yield
    finally:
        context.launch_gateway = original


def short_lived_jvm() -> contextlib.AbstractContextManager[None]:
    """Start JVMs with a light compiler: they plan a query and end, so no code gets hot."""
    return _jvm_options(dict.fromkeys(_JVM_OPTIONS, _LIGHT_COMPILER))


def few_batches_jvm() -> contextlib.AbstractContextManager[None]:
    """Start JVMs that optimize later than usual: they run a batch, which may be large, and end."""
    # The launcher only prints a command line.
    return _jvm_options(dict(zip(_JVM_OPTIONS, (_LATE_COMPILER, _LIGHT_COMPILER), strict=True)))


@contextlib.contextmanager
def _jvm_options(options: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in options}
    for name, own in before.items():
        # The user's own options come last, so they win.
        os.environ[name] = f"{options[name]} {own}" if own else options[name]
    try:
        yield
    finally:
        for name, own in before.items():
            if own is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = own


def end_jvm() -> None:
    """End the JVM of a stopped session, which frees its memory and its catalog's locks."""
    from pyspark import SparkContext

    context: Any = SparkContext
    gateway = context._gateway
    if gateway is None or context._active_spark_context is not None:
        return
    process: subprocess.Popen[bytes] | None = getattr(gateway, "proc", None)
    gateway.shutdown()
    context._gateway = context._jvm = None
    if process is not None:
        if process.stdin is not None:
            process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_REAPED_WITHIN_SECONDS)


def _launch(original: Any, conf: Any, log: Path | None, stdout_to_stderr: bool) -> Any:
    with contextlib.ExitStack() as opened:
        options: dict[str, Any] = {"start_new_session": True}
        sys.stdout.flush()
        sys.stderr.flush()
        if stdout_to_stderr:
            options["stdout"] = 2
        if log is not None:
            try:
                options["stderr"] = opened.enter_context(log.open("ab"))
            except OSError as error:
                raise WrongUse(f"cannot write Spark's log: {error}") from error
        Thread(target=_import_what_py4j_asks_for, daemon=True).start()
        return original(conf, popen_kwargs=options)


def _import_what_py4j_asks_for() -> None:
    """Import numpy and pandas while the JVM starts, as PySpark does with its first list for it."""
    with contextlib.suppress(ImportError):
        importlib.import_module("pyspark.testing.utils")


def child_of(spark: Any) -> subprocess.Popen[bytes] | None:
    """Return the process of the session's JVM; None where another process started it."""
    found: subprocess.Popen[bytes] | None = getattr(spark.sparkContext._gateway, "proc", None)
    return found


def is_gone(spark: Any, error: BaseException | None = None) -> bool:
    """Whether the JVM has ended; `error` is what a call to it has raised."""
    jvm = child_of(spark)
    if jvm is None:
        return error is not None and lost_connection(error)
    if error is not None and lost_connection(error):
        # The connection breaks a moment before the process can be waited for.
        with contextlib.suppress(subprocess.TimeoutExpired):
            jvm.wait(_REAPED_WITHIN_SECONDS)
    return jvm.poll() is not None


def lost_connection(error: BaseException) -> bool:
    from py4j.protocol import Py4JError, Py4JJavaError

    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, ConnectionError):
            return True
        # py4j reports a lost answer as a plain Py4JError; Java's own errors have a trace.
        is_plain = isinstance(seen, Py4JError) and not isinstance(seen, Py4JJavaError)
        if is_plain and "Trace:" not in str(seen):
            return True
        seen = seen.__cause__ or seen.__context__
    return False


def quiet_when_gone(spark: Any) -> None:
    """Suppress the tracebacks that PySpark and py4j print when the JVM dies during an answer."""

    def still_lives() -> bool:
        jvm = child_of(spark)
        with contextlib.suppress(subprocess.TimeoutExpired):
            # The connection breaks a moment before the process can be waited for.
            if jvm is not None:
                jvm.wait(_ENDED_WITHIN_SECONDS)
        return not is_gone(spark)

    # py4j logs it to the root logger.
    logging.getLogger().addFilter(lambda record: record.msg != _PY4J_BROKEN or still_lives())
    server = getattr(spark.sparkContext, "_accumulatorServer", None)
    if server is None:
        return
    tell = server.handle_error

    def handle_error(request: Any, address: Any) -> None:
        if still_lives():
            tell(request, address)

    server.handle_error = handle_error


def has_stopped(spark: Any) -> bool:
    """Whether Spark has ended inside its living JVM, so that no query can start in it."""
    return bool(spark._jsc.sc().isStopped())


def kill(spark: Any) -> None:
    jvm = child_of(spark)
    if jvm is not None:  # else another process started it, and it ends with this one
        jvm.kill()
        jvm.wait()


def end_words(spark: Any) -> str:
    """Return a sentence about the end of the JVM."""
    jvm = child_of(spark)
    status = None if jvm is None else jvm.poll()
    if status is None:
        return "Spark has ended, or its JVM does not answer any more"
    if status == _OUT_OF_MEMORY_STATUS:
        return "the JVM ended because its heap was full: give it more, spark.driver.memory"
    if status >= 0:
        return f"the JVM ended with exit status {status}"
    try:
        name = signal.Signals(-status).name
    except ValueError:
        name = f"signal {-status}"
    out_of_memory = ", as the system does when memory runs out" if name == "SIGKILL" else ""
    return f"the JVM was ended by {name}{out_of_memory}"


def last_words(log: Path | None) -> str:
    """Return the end of the JVM's log: the line about missing memory, or else the last line."""
    if log is None:
        return ""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - _TAIL_BYTES))
            lines = [line.strip() for line in file.read().decode(errors="replace").splitlines()]
    except OSError:
        return ""
    filled = [line for line in lines if line]
    telling = [line for line in filled if _OUT_OF_MEMORY in line] or filled[-1:]
    return shorten(telling[-1], 300) if telling else ""
