"""Starts one query, for `run` and for `start()`: judge, take the lease, start, note."""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from floodmark.checkpoint.conf_keys import CHECKPOINT_LOCATION, JARS
from floodmark.checkpoint.layout import COMMITS, OFFSETS
from floodmark.checkpoint.model import Checkpoint
from floodmark.checkpoint.relative_path import RelativePath
from floodmark.checkpoint.start_note import packed_tree
from floodmark.engine.code.query import is_remote_writer, read_query, require_writer, sql_conf
from floodmark.engine.run.failure import sentence_of
from floodmark.engine.run.stopping import runs
from floodmark.engine.sinks.exactly_once import told_to_sinks
from floodmark.engine.spark.hadoop import (
    checkpoint_files,
    is_of_storage,
    qualified,
    storage_error,
)
from floodmark.engine.start.before_start import IN_USE, allowed_rules, judge_start
from floodmark.engine.start.lease import Lease, NoLease, take
from floodmark.engine.start.notes import StartNote, source_notes, write_note
from floodmark.engine.start.query_to_start import QueryToStart
from floodmark.engine.start.saved import read_saved
from floodmark.errors import CannotRead, FloodmarkError, WrongUse
from floodmark.redaction import Redaction
from floodmark.secret_text import redacted
from floodmark.storage.files import WritableFiles
from floodmark.storage.machine.process import Process, host_name, process, this_process
from floodmark.visible import visible

_CONNECTOR_JAR = re.compile(
    r"(?P<connector>spark-sql-kafka-0-10|delta-spark)(?:_[\d.]+)+-(?P<version>\d[\w.]*)\.jar"
)


@dataclass(frozen=True)
class CodeOrigin:
    """Says which code a query comes from."""

    pipeline: str
    application: str | None = None
    fingerprint: str | None = None
    parameters: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Prepared:
    """A query that was judged and may start."""

    starting: QueryToStart
    origin: CodeOrigin
    warnings: tuple[str, ...]
    takes_over: bool = False
    """True where the user also allowed to take over from a living run."""


@dataclass(frozen=True)
class Launched:
    query: Any
    """PySpark's StreamingQuery."""
    starting: QueryToStart
    """The query and its checkpoint before the start."""
    lease: Lease | NoLease
    warnings: tuple[str, ...]


def start(
    writer: Any,
    checkpoint: str | Path,
    *,
    name: str | None = None,
    allow: Iterable[str] = (),
) -> Any:
    """Start a query instead of `writer.start()`, after a check; return PySpark's StreamingQuery.

    This sets the checkpoint for you. `allow` names the rules in spite of which the query starts.
    """
    if is_remote_writer(writer):
        from floodmark.engine.start.remote import start_remote  # few use it

        return start_remote(writer, str(checkpoint), name, frozenset(allow))
    require_writer(writer, "start()")
    main = getattr(sys.modules.get("__main__"), "__file__", None)
    origin = CodeOrigin(name or "application", main, fingerprint_of(main))
    launched = begin(prepare(writer, str(checkpoint), origin, frozenset(allow)), name)
    for warning in launched.warnings:
        say_to_caller(warning)
    from floodmark.engine.start.progress_lines import keep_progress  # which imports run's parts

    keep_progress(origin.pipeline, launched.query, launched.starting.location, say_to_caller)
    return launched.query


def say_to_caller(words: str) -> None:
    print(visible(f"floodmark: {redacted(words)}"), file=sys.stderr)


def fingerprint_of(path: str | None) -> str | None:
    """Return the SHA-256 of the code's file."""
    import hashlib

    try:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest() if path else None
    except OSError:
        return None


def prepare(writer: Any, checkpoint: str, origin: CodeOrigin, allowed: frozenset[str]) -> Prepared:
    """Judge the query, and refuse it with a reason; make nothing."""
    allowed = allowed_rules(allowed)
    spark = writer._spark
    location = qualified(spark, checkpoint)
    files = checkpoint_files(spark, location)
    query = read_query(writer)
    starting = QueryToStart(
        spark,
        origin.pipeline,
        location,
        files,
        read_saved(files),
        query,
        writer,
        origin.fingerprint,
        origin.application,
    )
    warnings = judge_start(starting, allowed)
    return Prepared(starting, origin, warnings, IN_USE in allowed)


def begin(
    prepared: Prepared,
    name: str | None = None,
    starts: Callable[[Any], Any] = lambda writer: writer.start(),
) -> Launched:
    """Start the query; a failed start leaves no half-made checkpoint.

    `name` is for a query without a name. `starts` starts a writer and returns its StreamingQuery.
    """
    starting, origin, warnings = prepared.starting, prepared.origin, prepared.warnings
    spark, files = starting.spark, starting.files
    lease, unleased = take_lease(files, origin.pipeline, spark, prepared.takes_over)
    warnings += unleased
    named = name if starting.query.name is None else None
    try:
        _clear_first_write(starting)
        with told_to_sinks(spark, lease):
            started = _start(starting.writer, starting.location, named, starts)
    except BaseException:
        lease.release()
        remove_half_made(starting)
        raise
    lease.hold(lambda: _is_active(started), lambda: _stop_superseded(started, origin.pipeline))
    try:
        write_note(files, _note(starting, origin, started))
    except FloodmarkError as error:
        warnings += (f"no note of this start was written: {error.what}",)
    return Launched(started, starting, lease, warnings)


def take_lease(
    files: WritableFiles, pipeline: str, spark: Any, force: bool
) -> tuple[Lease | NoLease, tuple[str, ...]]:
    try:
        return take(files, pipeline, _jvm_process(spark), force), ()
    except CannotRead as error:
        # Spark itself may still be able to write: an extra file never stops a stream.
        words = "no lease is held, so a second run on this checkpoint would not be refused"
        return NoLease(), (f"{words}: {error.what}",)


def _stop_superseded(query: Any, pipeline: str) -> None:
    """Stop a query whose checkpoint another run has; an application sees only this message."""
    say_to_caller(f"{pipeline}: another run has taken over its checkpoint; this one is stopped")
    with contextlib.suppress(Exception):  # the JVM may be gone with the query
        query.stop()


def _start(writer: Any, location: str, name: str | None, starts: Callable[[Any], Any]) -> Any:
    from py4j.protocol import Py4JError, Py4JJavaError
    from pyspark.errors import AnalysisException, PySparkException

    writer = writer.option(CHECKPOINT_LOCATION, location)
    if name is not None:
        writer = writer.queryName(name)
    try:
        return starts(writer)
    except AnalysisException as error:
        raise WrongUse("Spark refuses the query", sentence_of(error)) from error
    except PySparkException as error:
        raise WrongUse("Spark cannot start the query", sentence_of(error)) from error
    except Py4JJavaError as error:
        if is_of_storage(writer._spark, error.java_exception):
            raise storage_error(location, error.java_exception) from error
        raise WrongUse("Spark cannot start the query", sentence_of(error)) from error
    except Py4JError as error:
        raise WrongUse("Spark cannot start the query", sentence_of(error)) from error


def _clear_first_write(starting: QueryToStart) -> None:
    """Remove files of a driver that was killed while it wrote its very first log entry.

    Spark never reads these files, and since 4.1 refuses to begin beside them.
    """
    if starting.saved.resumes:
        return
    for folder in (OFFSETS, COMMITS):
        names = starting.files.level(folder).files
        left = [name for name in names if name.startswith(".") and ".tmp" in name]
        starting.files.delete(RelativePath(f"{folder}/{name}") for name in left)


def remove_half_made(starting: QueryToStart) -> None:
    """Remove what a first start left behind before it planned any batch.

    The error to show is the start's own, so a refusal by storage here is ignored.
    """
    from py4j.protocol import Py4JError

    with contextlib.suppress(FloodmarkError, Py4JError, ConnectionError):
        if starting.saved.exists or starting.files.level("offsets").files:
            return
        spark = starting.spark
        path = spark._jvm.org.apache.hadoop.fs.Path(starting.location)
        conf = spark._jsparkSession.sessionState().newHadoopConf()
        path.getFileSystem(conf).delete(path, True)


def _is_active(query: Any) -> bool:
    from py4j.protocol import Py4JError

    try:
        return runs(query)
    except (Py4JError, OSError):  # the JVM has ended, and the query with it
        return False


def _jvm_process(spark: Any) -> Process:
    # ProcessHandle would return it directly, but Spark 3.5 still runs on Java 8.
    name = str(spark._jvm.java.lang.management.ManagementFactory.getRuntimeMXBean().getName())
    return process(int(name.partition("@")[0]))


def _note(starting: QueryToStart, origin: CodeOrigin, started: Any) -> StartNote:
    spark, query = starting.spark, starting.query
    jvm = spark._jvm.java.lang.System
    redaction = Redaction.fresh()
    return StartNote(
        origin.pipeline,
        origin.application,
        origin.fingerprint,
        redaction.parameters(origin.parameters or {}),
        str(started.id),
        str(started.runId),
        started.name,
        str(spark.version),
        str(jvm.getProperty("java.version")),
        connector_versions(spark),
        redacted(str(spark.sparkContext.master)),
        source_notes(query.sources, redaction),
        query.sink,
        redaction.options(query.sink_told),
        query.output_mode,
        query.trigger,
        query.schema_json,
        redaction.conf(sql_conf(spark)),
        host_name(),
        this_process().pid,
        packed_tree(query.tree.hidden(redaction.salt)),
        next_batch(starting.saved.checkpoint),
        redaction.salt,
    )


def next_batch(checkpoint: Checkpoint | None) -> int:
    """Return the first batch that this start runs."""
    if checkpoint is None or checkpoint.latest_batch is None:
        return 0
    in_flight = checkpoint.in_flight_batch
    return checkpoint.latest_batch + 1 if in_flight is None else in_flight


def connector_versions(spark: Any) -> dict[str, str]:
    """Return the connectors' versions, from the names of the jars added to the session."""
    jars = str(spark.sparkContext.getConf().get(JARS, ""))
    found = (_CONNECTOR_JAR.search(jar) for jar in jars.split(","))
    return {match["connector"]: match["version"] for match in found if match}
