"""`floodmark run`: run the pipelines of an application, recoverably."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import click

from floodmark import api
from floodmark.cli import options
from floodmark.cli.text import echo


def _answering(name: str, words: str) -> Callable[..., Any]:
    """Add a port that is answered, and its address."""
    port, host = f"{name}-port", f"{name}-host"
    where = f"The address of {port}."
    return options.together(
        click.option(host, default="127.0.0.1", show_default=True, help=where),
        click.option(port, type=click.IntRange(0, 65535), help=words),
    )


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
@options.spark_log
@_answering("--health", "Answer a supervisor's probes there: /livez and /readyz.")
@_answering("--metrics", "Answer Prometheus there: /metrics.")
@click.option(
    "--commit-to-group",
    metavar="NAME",
    help="Keep the committed offsets in this Kafka consumer group, for other tools to see; "
    "{pipeline} in it is the pipeline's name. A group that has members is refused.",
)
@click.option(
    "--outline",
    metavar="FILE",
    help="Keep the checkpoint's outline up to date in this file, for `check` in a pull request; "
    "{pipeline} in it is the pipeline's name.",
)
@click.option(
    "--async-progress",
    metavar="TIME",
    help="Write the logs every TIME beside the batches (1s), where Spark can: no state, a sink "
    "such as Kafka. Gives up exactly-once.",
)
@click.option(
    "--fresh-with-state",
    is_flag=True,
    help="DStreams: begin a new context with this code and the old state.",
)
@options.with_file(
    "FILE.py", "DStreams: its function state(key, value) turns the old state into the new."
)
@click.option(
    "--old-code", is_flag=True, help="DStreams: recover the saved code although this file changed."
)
@options.trusting(
    "DStreams: unpickle a state that is not plain data. This runs code of its writer."
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
def command(application: str, bisect: bool, bisect_sink: bool, as_json: bool, **named: Any) -> int:
    """Run a script or the pipelines of an application, and go on where they stopped.

    A plain PySpark script is run unchanged, with its own arguments after two dashes; each of its
    start() calls is looked at first, holds a lease, leaves a note and reports its batches.

    SIGTERM and Ctrl-C finish the running batch and stop; a second one stops now.
    """
    if bisect or bisect_sink:
        return _bisect(application, bisect_sink, as_json, named)
    if sys.stderr.isatty():
        echo("Spark is starting …", err=True)
    from floodmark.api.running import run_as_command

    with options.only_the_document(as_json):
        report = run_as_command(
            [sys.executable, *sys.orig_argv[1:]],
            application,
            stdout_to_stderr=as_json,
            bisecting=_bisecting(),
            **named,
        )
    if isinstance(report, int):
        return report
    if as_json:
        options.show_json(report)
        return 0
    for one in report.pipelines:
        last = "" if one.last_batch is None else f", the last is batch {one.last_batch}"
        batches = "1 batch" if one.batches == 1 else f"{one.batches} batches"
        rows = "1 row" if one.rows == 1 else f"{one.rows:,} rows"
        echo(f"{one.pipeline} {one.ended}: {batches}, {rows} read{last}")
    return 0


def _bisect(application: str, sink: bool, as_json: bool, named: dict[str, Any]) -> int:
    from floodmark.cli.text.render_bisect import show

    asked = {name: named[name] for name in ("spark_log", *options.OF_CODE)}
    say = partial(echo, err=True)
    show(api.bisect(application, sink=sink, say=say, **asked), as_json)
    return 0


def _bisecting() -> str:
    """Return the command that examines a failing batch: this one with one more word."""
    return shlex.join(["floodmark", *sys.argv[1:], "--bisect"])
