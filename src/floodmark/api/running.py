"""Provides the verbs that run something: `run`, `bisect` (find a failing record) and `demo`."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from floodmark.api.arguments import require_spark_extra, script_options, several_of, spark_settings
from floodmark.errors import StoppedMidway, WrongUse
from floodmark.visible import visible

if TYPE_CHECKING:  # each verb imports what only it needs: start-up is part of every answer
    from floodmark.engine.bisect.bisect import BisectReport as BisectReport
    from floodmark.engine.demo.story import Story as Story
    from floodmark.engine.demo.story import StoryBatch as StoryBatch
    from floodmark.engine.run.listeners import Listener
    from floodmark.engine.run.stream import RunReport


def run(
    application: str,
    *,
    available_now: bool = False,
    once: bool = False,
    trigger: str | None = None,
    settings: Mapping[str, str] | None = None,
    start_file: str | None = None,
    allow: str | Iterable[str] = (),
    restart: str = "never",
    max_restarts: int = 10,
    progress: str | Path | None = None,
    spark_log: str | None = None,
    health_port: int | None = None,
    health_host: str = "127.0.0.1",
    metrics_port: int | None = None,
    metrics_host: str = "127.0.0.1",
    commit_to_group: str | None = None,
    outline: str | None = None,
    async_progress: str | None = None,
    arguments: Iterable[str] = (),
    query: str | int | None = None,
    py_files: str | Iterable[str] = (),
    script_limit: float | None = None,
    master: str | None = None,
    conf: Mapping[str, Any] | str | Iterable[str] = (),
    stdout_to_stderr: bool = False,
    bisecting: str | None = None,
    fresh_with_state: bool = False,
    with_file: str | None = None,
    old_code: bool = False,
    trust: bool = False,
) -> RunReport:
    """Run a script, or the pipelines or DStreams of `APP.py[:NAME]`, until they end.

    For DStreams: `fresh_with_state` begins a new context with this code and the old state, which
    goes through the function in the file `with_file`; `old_code` recovers code that has changed
    since; `trust` unpickles a state that is not plain data, which runs code of its writer.

    The run uses the Spark session of this process or starts one. `restart` is never or on-failure;
    a run whose JVM has died needs a new process: only the command starts that. `outline` is a file
    that is kept up to date with the outline of the checkpoint. `async_progress` is the interval at
    which Spark writes the logs, beside the batches ("1s"): this is faster, but gives up exactly-
    once. `bisecting` is the command that a failure proposes for finding the record.
    """
    from floodmark.connectors.kafka.consumer_group import check_name
    from floodmark.engine.app.script_run import ScriptExit, run_script_application
    from floodmark.engine.app.script_text import read_source
    from floodmark.engine.dstreams.application import is_dstream, load_dstream
    from floodmark.engine.dstreams.context_recovery import DStreamOptions
    from floodmark.engine.dstreams.runtime import run_dstream
    from floodmark.engine.pipelines.application import application_file, load_application
    from floodmark.engine.pipelines.declarative import split_spec
    from floodmark.engine.pipelines.start_positions import Start, read_start
    from floodmark.engine.run.listeners.checkpoint_times import CheckpointTimes
    from floodmark.engine.run.listeners.consumer_group import GroupListener
    from floodmark.engine.run.listeners.outline_listener import OutlineListener
    from floodmark.engine.run.new_process import take_carried
    from floodmark.engine.run.options import RunOptions
    from floodmark.engine.run.output import unbreakable_output
    from floodmark.engine.run.restart_policy import RestartPolicy
    from floodmark.engine.run.runtime import run_application
    from floodmark.engine.run.stream import RunReport
    from floodmark.engine.run.triggers import milliseconds, trigger_of
    from floodmark.engine.spark.session import for_own_sessions
    from floodmark.storage.pipeline_spec import is_pipeline_spec

    if restart not in ("never", "on-failure"):
        raise WrongUse(f"restart={restart!r}: unknown", do="Give never or on-failure.")
    spark_conf = spark_settings(conf, master)
    if is_pipeline_spec(split_spec(application)[0]):
        _refuse_options_of_queries(
            available_now=available_now,
            once=once,
            trigger=trigger,
            start_file=start_file,
            progress=progress,
            health_port=health_port,
            metrics_port=metrics_port,
            commit_to_group=commit_to_group,
            async_progress=async_progress,
            settings=settings,
            query=query,
            restart=restart != "never",
        )
        status = _pipeline_status(
            application, allow, spark_conf, arguments, spark_log, stdout_to_stderr
        )
        if status:
            raise ScriptExit(status)
        return RunReport(())
    carried = take_carried()
    wanted = trigger_of(available_now, once, trigger)
    async_ms = None if async_progress is None else milliseconds(async_progress, "--async-progress")
    start = read_start(start_file) if start_file is not None else Start()
    source = application_file(application)
    log = _log_file(spark_log, source.stem, carried.log)
    with contextlib.ExitStack() as closing:
        closing.enter_context(unbreakable_output())
        served = _answering(closing, (health_host, health_port), (metrics_host, metrics_port))
        listeners: list[Listener] = [CheckpointTimes(), *served]
        if commit_to_group is not None:
            listeners.append(GroupListener(check_name(commit_to_group)))
        if outline is not None:
            listeners.append(OutlineListener(str(outline)))
        closing.enter_context(_kept_if_it_tells(log, spark_log is None))
        request = RunOptions(
            wanted,
            settings or {},
            start,
            frozenset(several_of(allow)),
            RestartPolicy(restart == "on-failure", max_restarts),
            Path(progress) if progress is not None else None,
            spark_conf,
            log,
            stdout_to_stderr,
            carried,
            tuple(listeners),
            bisecting,
            async_ms,
        )
        read = read_source(source)
        dstreams = DStreamOptions(fresh_with_state, old_code, trust, with_file)
        if is_dstream(read, application):
            with for_own_sessions(source, None, spark_conf, log, stdout_to_stderr):
                one = load_dstream(application)
            return run_dstream(one, source, request, dstreams)
        if dstreams != DStreamOptions():
            raise WrongUse(
                f"{source} declares no DStreams",
                "--fresh-with-state, --with, --old-code and --trust are for @dstream.",
                "`floodmark migrate` carries the state of a Structured Streaming query.",
            )
        if not read.declares_pipelines():
            script = script_options(arguments, query, py_files, script_limit)
            return run_script_application(read, script, request)
        with for_own_sessions(source, None, spark_conf, log, stdout_to_stderr):
            loaded = load_application(application)
        return run_application(loaded, request)


def _answering(
    closing: contextlib.ExitStack, health: tuple[str, int | None], metrics: tuple[str, int | None]
) -> Iterator[Listener]:
    """Serve probes and Prometheus, at hosts and ports, until the run ends."""
    from floodmark.engine.run.listeners.answering import answering
    from floodmark.engine.run.listeners.health import Health
    from floodmark.engine.run.listeners.metrics import RunMetrics

    host, port = health
    if port is not None:
        probes = Health()
        closing.enter_context(answering(probes.reply, host, port, "health"))
        yield probes
    host, port = metrics
    if port is not None:
        found = RunMetrics()
        taken = closing.enter_context(answering(found.reply, host, port, "metrics"))
        found.address = f"http://{host}:{taken}/metrics"
        yield found


def _pipeline_status(
    application: str,
    allow: str | Iterable[str],
    conf: Mapping[str, str],
    arguments: Iterable[str],
    spark_log: str | None,
    stdout_to_stderr: bool,
) -> int:
    from floodmark.api.pipeline_run import run_pipeline

    log = _log_file(spark_log, Path(application).stem, None)
    with _kept_if_it_tells(log, spark_log is None):
        return run_pipeline(
            application,
            allow=several_of(allow),
            conf=conf,
            arguments=tuple(arguments),
            log=log,
            stdout_to_stderr=stdout_to_stderr,
            say=lambda words: print(visible(words), file=sys.stderr, flush=True),
        )


def run_as_command(command: list[str], application: str, **options: Any) -> RunReport | int:
    """Run as `run` does, for a run that is this process; return a script's own exit status.

    If the JVM has died and should start again, the command replaces this process.
    """
    from floodmark.engine.app.script_run import ScriptExit
    from floodmark.engine.run.new_process import NewJvmNeeded, start_anew

    folder = Path.cwd()
    try:
        return run(application, **options)
    except ScriptExit as error:
        return error.status
    except NewJvmNeeded as error:
        start_anew(error.carried, folder, command)
        raise  # it does not come back


def demo(folder: str | Path = "data/demo", tell: Callable[[str], Any] = print) -> Story:
    """Kill a stream in the middle of a batch, restart it, and compare it with a batch query."""
    from floodmark.engine.demo.story import tell_story
    from floodmark.engine.spark.java import require_java
    from floodmark.engine.spark.session import spark_version

    require_java(spark_version())
    return tell_story(Path(folder), tell)


def bisect(
    application: str,
    *,
    sink: bool = False,
    settings: Mapping[str, str] | None = None,
    spark_log: str | None = None,
    arguments: Iterable[str] = (),
    query: str | int | None = None,
    py_files: str | Iterable[str] = (),
    script_limit: float | None = None,
    master: str | None = None,
    conf: Mapping[str, Any] | str | Iterable[str] = (),
    say: Callable[[str], Any] = lambda words: None,
) -> BisectReport:
    """Find the record at which the batch in flight fails, by trials on a fork; run nothing else.

    With `sink` the trials also call the foreachBatch function. `say` gets a line about the trials.
    """
    from floodmark.engine.app.script_text import read_source
    from floodmark.engine.bisect.bisect import bisect_application
    from floodmark.engine.pipelines.application import application_file, load_application
    from floodmark.engine.spark.session import for_own_sessions

    require_spark_extra(and_state=False)
    spark_conf = spark_settings(conf, master)
    source = application_file(application)
    log = _log_file(spark_log, source.stem, None)
    with (
        _kept_if_it_tells(log, spark_log is None),
        contextlib.redirect_stdout(sys.stderr),  # for the application's own output
    ):
        script = script_options(arguments, query, py_files, script_limit)
        if not read_source(source).declares_pipelines():
            return bisect_application(
                application, settings or {}, spark_conf, log, sink, say, script
            )
        with for_own_sessions(source, None, spark_conf, log, True):
            loaded = load_application(application)
        return bisect_application(loaded, settings or {}, spark_conf, log, sink, say)


def _refuse_options_of_queries(**given: object) -> None:
    """Refuse options of queries, as a pipeline's runner starts its queries itself."""
    named = [
        f"--{name.replace('_', '-')}"
        for name, value in given.items()
        if value is not None and value is not False and value != {}
    ]
    if named:
        raise WrongUse(
            f"{', '.join(named)}: not for a declarative pipeline",
            "Its own runner starts the queries, and does not have this option.",
            "Leave it out; options of the runner go after two dashes: -- --refresh TABLE",
        )


def _log_file(chosen: str | None, name: str, carried: str | None) -> Path | None:
    from floodmark.engine.spark.session import new_log

    if chosen is not None:
        return None if chosen == "-" else Path(chosen)
    return Path(carried) if carried else new_log(name)


@contextlib.contextmanager
def _kept_if_it_tells(log: Path | None, is_ours: bool) -> Iterator[None]:
    """Keep Spark's log where a run began and failed, or where the user has named it."""
    try:
        yield
    except StoppedMidway:
        raise
    except BaseException:
        if is_ours and log is not None:
            log.unlink(missing_ok=True)
        raise
    if is_ours and log is not None:
        log.unlink(missing_ok=True)
