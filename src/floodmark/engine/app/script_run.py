"""`floodmark run script.py`: runs the unchanged script and supervises each start."""

from __future__ import annotations

import contextlib
import sys
import traceback

from floodmark.engine.app.home import at_home
from floodmark.engine.app.limit import ScriptEnded
from floodmark.engine.app.options import ScriptOptions
from floodmark.engine.app.patching import Patches
from floodmark.engine.app.running import innermost_line
from floodmark.engine.app.source import ScriptText
from floodmark.engine.app.supervised import Supervision, Supervisor
from floodmark.engine.run.failure import Failure, sentence_of
from floodmark.engine.run.runtime import RunOptions
from floodmark.engine.run.signals import StopSignals
from floodmark.engine.run.stream import RunReport
from floodmark.engine.run.view import PlainView, View
from floodmark.engine.spark.session import for_own_sessions, running_session
from floodmark.engine.start.before_start import allowed_rules
from floodmark.errors import NoAnswer, StoppedMidway, WrongUse
from floodmark.secret_text import redacted
from floodmark.visible import visible


class ScriptExit(Exception):
    """The script has called sys.exit() itself: its status is that of the run."""

    def __init__(self, status: int) -> None:
        super().__init__(f"exit status {status}")
        self.status = status


def run_script_application(
    source: ScriptText, options: ScriptOptions, request: RunOptions, view: View | None = None
) -> RunReport:
    """Runs the script to its end. What it prints and writes is its own."""
    allowed = allowed_rules(request.allowed)
    _refuse_of_pipelines(request)
    if source.is_notebook:
        raise WrongUse(
            f"{source.path} is a notebook, and runs in its own place",
            "What it finds ready-made there, `dbutils` say, is not here.",
            "Put `import floodmark.auto` into its first cell: its streams are watched then.",
        )
    code = source.compiled()
    stop = StopSignals()
    what = Supervision(
        source.path.stem,
        str(source.path),
        source.fingerprint,
        allowed,
        request.trigger,
        request.progress,
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
        shown = closing.enter_context(view or PlainView([what.name]))
        supervisor = Supervisor(what, shown, stop)
        patches = closing.enter_context(Patches())
        supervisor.attach(patches)
        error: BaseException | None = None
        try:
            exec(code, vars(module))  # nosec B102
        except ScriptEnded:
            pass
        except BaseException as raised:
            error = raised
        reports = supervisor.close()
        if own:
            closing.callback(_end_session)
    _judge_end(source, supervisor, error, bool(reports))
    if not reports:
        raise WrongUse(
            f"{source.path} has ended without starting a streaming query",
            "It was run as it is; none of its calls was a start() or toTable() with a "
            "checkpointLocation.",
        )
    return RunReport(reports)


def _refuse_of_pipelines(request: RunOptions) -> None:
    """Options that only a pipeline can follow, which is a function and can be called again."""
    given = {
        "--set": bool(request.settings),
        "--start": bool(request.start.sources),
        "--restart": request.restart.on_failure,
    }
    for option, is_given in given.items():
        if is_given:
            raise WrongUse(
                f"{option} is for a file of pipelines, and this is a script",
                "A script builds and starts its queries itself.",
                "Leave it out; a service manager can start the script again, see "
                "`floodmark deploy`."
                if option == "--restart"
                else "Leave it out; a script's own arguments follow two dashes.",
            )


def _end_session() -> None:
    from pyspark import SparkContext

    if SparkContext._active_spark_context is not None:
        with contextlib.suppress(Exception):  # its JVM may be gone
            running_session().stop()


def _judge_end(
    source: ScriptText, supervisor: Supervisor, error: BaseException | None, has_started: bool
) -> None:
    """A query that failed is told first: what the script made of it comes after."""
    if supervisor.refused is not None:
        raise supervisor.refused
    for name, checkpoint, failure in supervisor.failures():
        raise _failed(name, checkpoint, failure) from error
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
    if not has_started:
        line, text = innermost_line(source, error)
        raise WrongUse(
            f"{source.path} fails before it starts a query: {type(error).__name__}: "
            f"{sentence_of(error)}",
            f"{source.path}, line {line}: {text}" if line is not None else "",
            "Run it with `python` alone to see the whole traceback, or set FLOODMARK_DEBUG=1.",
        ) from error
    _print_traceback(source, error)
    raise NoAnswer(f"{source.path} has failed: {type(error).__name__}", "Its traceback is above.")


def _failed(name: str, checkpoint: str, failure: Failure) -> StoppedMidway:
    where = f": {failure.batch_words}" if failure.batch is not None else ""
    do = [
        "Nothing is lost: the next start runs the batch again over the same offsets."
        if failure.batch is not None
        else "No batch was in flight.",
        f"Correct the cause, then start again. `floodmark inspect {checkpoint}` shows where it "
        "stands.",
    ]
    why = "\n".join([failure.cause, *failure.offsets])
    return StoppedMidway(f"query {name} failed{where}", why, "\n".join(do))


def _print_traceback(source: ScriptText, error: Exception) -> None:
    """As Python prints it, from the script's first line on."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename != source.file:
        trace = trace.tb_next
    traceback.print_exception(type(error), error, trace or error.__traceback__)
