"""`floodmark run`"""

from __future__ import annotations

import contextlib
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from floodmark.cli import options
from floodmark.cli.words import echo
from floodmark.errors import StoppedMidway

if TYPE_CHECKING:
    from floodmark.engine.app.options import ScriptOptions


@click.command("run", cls=options.TakesScript)
@click.argument("application", metavar="APP.py[:NAME]")
@click.option("--available-now", is_flag=True, help="Process what is there, then end.")
@click.option("--once", is_flag=True, help="Run one batch, then end.")
@click.option("--trigger", metavar="TIME", help="Begin a batch every TIME: 500ms, 10s, 5min.")
@options.settings
@click.option(
    "--start", "start_file", metavar="FILE", help="Where new streams begin: offsets handed over."
)
@click.option("--allow", multiple=True, metavar="NAME", help="Start although this rule objects.")
@click.option(
    "--restart",
    type=click.Choice(["never", "on-failure"]),
    default="never",
    show_default=True,
    help="What to do when a query fails.",
)
@click.option(
    "--max-restarts",
    type=click.IntRange(min=0),
    default=10,
    show_default=True,
    help="Restarts in a row before it stops.",
)
@click.option(
    "--progress",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write one JSON line for each batch here. "
    "[default: _floodmark/progress.jsonl in a local CP]",
)
@click.option(
    "--spark-log", metavar="FILE", help="Spark's log; - is stderr. [default: only kept on failure]"
)
@click.option(
    "--health-port",
    type=click.IntRange(0, 65535),
    help="Answer a supervisor's probes there: /livez and /readyz.",
)
@click.option(
    "--health-host", default="127.0.0.1", show_default=True, help="The address of --health-port."
)
@click.option(
    "--bisect",
    is_flag=True,
    help="Run nothing; name the record that the batch in flight fails at, by trials on a fork.",
)
@click.option(
    "--bisect-sink",
    is_flag=True,
    help="The trials call the foreachBatch function as well: its writes are real.",
)
@options.script
@options.spark
@options.as_json
def command(
    application: str,
    available_now: bool,
    once: bool,
    trigger: str | None,
    settings: tuple[str, ...],
    start_file: str | None,
    allow: tuple[str, ...],
    restart: str,
    max_restarts: int,
    progress: Path | None,
    spark_log: str | None,
    health_port: int | None,
    health_host: str,
    bisect: bool,
    bisect_sink: bool,
    script: ScriptOptions,
    master: str | None,
    conf: tuple[str, ...],
    as_json: bool,
) -> int:
    """Run a script or the pipelines of an application, and go on where they stopped.

    A plain PySpark script is run unchanged, with its own arguments after two dashes; each of its
    start() calls is looked at first, holds a lease, leaves a note and reports its batches.

    SIGTERM and Ctrl-C finish the running batch and stop; a second one stops now.
    """
    from floodmark.engine.app.script_run import ScriptExit, run_script_application
    from floodmark.engine.app.source import read_source, require_pipelines
    from floodmark.engine.pipelines.application import application_file, load_application
    from floodmark.engine.pipelines.parameters import parse_settings
    from floodmark.engine.pipelines.start_positions import Start, read_start
    from floodmark.engine.run.carried import NewJvmNeeded, start_anew, take_carried
    from floodmark.engine.run.health import Health, answering
    from floodmark.engine.run.output import unbreakable_output
    from floodmark.engine.run.restarting import RestartPolicy
    from floodmark.engine.run.runtime import RunOptions, run_application
    from floodmark.engine.run.triggers import trigger_of
    from floodmark.engine.spark.session import for_own_sessions

    folder, carried = Path.cwd(), take_carried()
    wanted = trigger_of(available_now, once, trigger)
    given = parse_settings(settings)
    spark_conf = parse_settings(options.spark_settings(master, conf), "--conf")
    start = read_start(start_file) if start_file is not None else Start()
    source = application_file(application)
    log = _log_file(spark_log, source.stem, carried.log)
    if bisect or bisect_sink:
        from floodmark.cli.run_bisect import bisected, show

        with (
            _kept_if_it_tells(log, spark_log is None),
            contextlib.redirect_stdout(sys.stderr),  # what the pipeline prints
        ):
            require_pipelines(read_source(source), "--bisect")
            with for_own_sessions(source, None, spark_conf, log, True):
                loaded = load_application(application)
            found = bisected(loaded, given, spark_conf, log, bisect_sink)
        show(found, as_json)
        return 0
    with contextlib.ExitStack() as closing:
        closing.enter_context(unbreakable_output())
        if as_json:
            # stdout belongs to the document: what pipelines print goes to stderr.
            closing.enter_context(contextlib.redirect_stdout(sys.stderr))
        health = Health() if health_port is not None else None
        if health is not None and health_port is not None:
            closing.enter_context(answering(health, health_host, health_port))
        closing.enter_context(_kept_if_it_tells(log, spark_log is None))
        request = RunOptions(
            wanted,
            given,
            start,
            frozenset(allow),
            RestartPolicy(restart == "on-failure", max_restarts),
            progress,
            spark_conf,
            log,
            as_json,
            carried,
            health,
            _bisecting(),
        )
        if sys.stderr.isatty():
            echo("Spark is starting …", err=True)
        read = read_source(source)
        try:
            if not read.declares_pipelines():
                report = run_script_application(read, script, request)
            else:
                with for_own_sessions(source, None, spark_conf, log, as_json):
                    loaded = load_application(application)
                report = run_application(loaded, request)
        except ScriptExit as error:
            return error.status
        except NewJvmNeeded as error:
            start_anew(error.carried, folder, [sys.executable, *sys.orig_argv[1:]])
    if as_json:
        options.show_json(report)
        return 0
    for one in report.pipelines:
        last = "" if one.last_batch is None else f", the last is batch {one.last_batch}"
        batches = "1 batch" if one.batches == 1 else f"{one.batches} batches"
        echo(f"{one.pipeline} {one.ended}: {batches}, {one.rows:,} rows read{last}")
    return 0


def _bisecting() -> str:
    """The command that looks into a batch that fails for good: this one, and one word more."""
    return shlex.join(["floodmark", *sys.argv[1:], "--bisect"])


def _log_file(chosen: str | None, name: str, carried: str | None) -> Path | None:
    from floodmark.engine.spark.session import new_log

    if chosen is not None:
        return None if chosen == "-" else Path(chosen)
    return Path(carried) if carried else new_log(name)


@contextlib.contextmanager
def _kept_if_it_tells(log: Path | None, is_ours: bool) -> Iterator[None]:
    """Spark's log stays where a run began and failed, or where the user has named it."""
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
