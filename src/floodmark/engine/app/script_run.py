"""Implements `floodmark run script.py`: runs the unchanged script and supervises each start."""

from __future__ import annotations

import contextlib
import sys
import traceback

from floodmark.engine.app.dry_run import innermost_line
from floodmark.engine.app.notebook_names import notebook_names
from floodmark.engine.app.options import ScriptOptions
from floodmark.engine.app.patching import Patches
from floodmark.engine.app.script_calls import Watch
from floodmark.engine.app.script_restart import after_failure, refused_for_now
from floodmark.engine.app.script_text import ScriptText
from floodmark.engine.app.supervised import Supervision, Supervisor
from floodmark.engine.app.surroundings import at_home
from floodmark.engine.app.time_limit import ScriptEnded
from floodmark.engine.run.failure import sentence_of
from floodmark.engine.run.listeners import ToldView
from floodmark.engine.run.live_table import PlainView, View
from floodmark.engine.run.options import RunOptions
from floodmark.engine.run.signals import StopSignals
from floodmark.engine.run.stream import PipelineReport, RunReport
from floodmark.engine.spark.java import require_java
from floodmark.engine.spark.session import for_own_sessions, running_session, spark_version
from floodmark.engine.start.before_start import allowed_rules
from floodmark.errors import NoAnswer, WrongUse
from floodmark.secret_text import redacted
from floodmark.visible import visible

_NO_JVM = "JAVA_GATEWAY_EXITED"
"""What pyspark says where its JVM ended before it answered, for whatever reason."""


class ScriptExit(Exception):
    """Raised when the script itself calls sys.exit(): its status is that of the run."""

    def __init__(self, status: int) -> None:
        super().__init__(f"exit status {status}")
        self.status = status


def run_script_application(
    source: ScriptText, options: ScriptOptions, request: RunOptions, view: View | None = None
) -> RunReport:
    """Run the script to its end; it prints and writes as usual."""
    allowed = allowed_rules(request.allowed)
    _refuse_of_pipelines(request)
    code = source.compiled()
    stop = StopSignals()
    what = Supervision(
        source.path.stem,
        str(source.path),
        source.fingerprint,
        allowed,
        request.trigger,
        request.progress,
        request.carried,
        request.listeners,
        request.async_progress_ms,
    )
    own = running_session() is None
    with contextlib.ExitStack() as closing:
        module = closing.enter_context(at_home(source, options))
        closing.enter_context(
            for_own_sessions(
                source.path, source.text, request.conf, request.log, request.stdout_to_stderr
            )
        )
        closing.enter_context(stop.listening())
        shown = closing.enter_context(ToldView(view or PlainView([what.name]), request.listeners))
        supervisor = Supervisor(what, shown, stop)
        patches = closing.enter_context(Patches())
        supervisor.attach(patches)
        error: BaseException | None = None
        watch = Watch(source)  # for a notebook: it records what is not carried out here
        try:
            if source.is_notebook:
                offered = notebook_names(watch, options.arguments, is_run=True)
                vars(module).update(offered)
            exec(code, vars(module))  # nosec B102
        except ScriptEnded:
            pass
        except BaseException as raised:
            error = raised
        reports = supervisor.close()
        if own:
            closing.callback(_end_session)
    for act in watch.acts:
        words = f"{act.where(source)}: not carried out: {act.words}"
        print(visible(f"floodmark: {redacted(words)}"), file=sys.stderr)
    _judge_end(source, supervisor, error, reports, request)
    if not reports:
        raise WrongUse(
            f"{source.path} has ended without starting a streaming query",
            "The script ran unchanged; it called neither start() nor toTable() with a "
            "checkpointLocation.",
        )
    return RunReport(reports)


def _refuse_of_pipelines(request: RunOptions) -> None:
    """Refuse options that only a pipeline supports, as it is a function with parameters."""
    if request.settings:
        raise WrongUse(
            "--set is for a file of pipelines, but this is a script",
            "A script has arguments instead of parameters.",
            "Give them after two dashes: floodmark run script.py -- ARGUMENT…",
        )
    if request.start.sources:
        raise WrongUse(
            "--start is for a file of pipelines, but this is a script",
            "A script itself says where its sources begin if its checkpoint is new.",
            "`floodmark upgrade CP NEW` makes a checkpoint that begins right after another one; "
            "let the script use NEW.",
        )


def _end_session() -> None:
    from pyspark import SparkContext

    if SparkContext._active_spark_context is not None:
        with contextlib.suppress(Exception):  # its JVM may have ended
            running_session().stop()


def _judge_end(
    source: ScriptText,
    supervisor: Supervisor,
    error: BaseException | None,
    reports: tuple[PipelineReport, ...],
    request: RunOptions,
) -> None:
    """Raise the run's error; a failed query comes before the script's own exception."""
    failures = supervisor.failures()
    if supervisor.refused is not None:
        passing = refused_for_now(supervisor.refused) if request.restart.on_failure else None
        if passing is None:
            raise supervisor.refused
        failures = [(supervisor.what.name, "CP", passing), *failures]
    for name, checkpoint, failure in failures:
        raise after_failure(name, checkpoint, failure, supervisor, reports, request) from error
    if error is None or supervisor.stop.asked:
        return
    if isinstance(error, SystemExit):
        if error.code in (None, 0):
            return
        if not isinstance(error.code, int):
            print(visible(redacted(str(error.code))), file=sys.stderr)
        raise ScriptExit(error.code if isinstance(error.code, int) else 1)
    if not isinstance(error, Exception):
        raise error
    if not reports:
        if _NO_JVM in str(error):
            # Only now: a script that uses Spark Connect needs no Java here.
            require_java(spark_version())
        line, text = innermost_line(source, error)
        raise WrongUse(
            f"{source.path} fails before it starts a query: {type(error).__name__}: "
            f"{sentence_of(error)}",
            f"{source.path}, line {line}: {text}" if line is not None else "",
            "Run it with `python` alone to see the whole traceback, or set FLOODMARK_DEBUG=1.",
        ) from error
    _print_traceback(source, error)
    raise NoAnswer(f"{source.path} has failed: {type(error).__name__}", "Its traceback is above.")


def _print_traceback(source: ScriptText, error: Exception) -> None:
    """Print a traceback as Python does, from the script's first line on."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename != source.file:
        trace = trace.tb_next
    traceback.print_exception(type(error), error, trace or error.__traceback__)
