"""`floodmark bootstrap`"""

from __future__ import annotations

from typing import Any

import click

from floodmark import api
from floodmark.cli import changing, options


@click.command("bootstrap", cls=options.TakesScript)
@click.argument("new", metavar="NEW")
@click.option(
    "--app", required=True, metavar="APP.py[:P]", help="The code that will use the checkpoint."
)
@click.option(
    "--state",
    multiple=True,
    required=True,
    metavar="[OPERATOR=]TABLE|FILE",
    help="Rows of state; OPERATOR is a number, or NUMBER/VARIABLE.",
)
@click.option("--start", metavar="FILE", help="Where the sources begin, as `run --start` takes it.")
@click.option("--scratch", metavar="URL", help="Where executors put rows; shared storage.")
@options.settings
@options.script
@options.spark
@changing.changing
def command(
    new: str,
    app: str,
    state: tuple[str, ...],
    start: str | None,
    scratch: str | None,
    settings: tuple[str, ...],
    script: dict[str, Any],
    master: str | None,
    conf: tuple[str, ...],
    execute: bool,
    out: str | None,
    wait: float | None,
    storage: dict[str, Any],
    as_json: bool,
) -> None:
    """Make NEW, a first checkpoint for a stream, with state computed by a batch job.

    The columns are named as `floodmark state` shows the key's and the value's.
    """
    from floodmark.api.arguments import parse_settings

    tables = {}
    for one in state:
        operator, equals, table = one.partition("=")
        known = bool(equals) and operator.partition("/")[0].isdecimal()
        tables[operator if known else "0"] = table if known else one
    with changing.carrying(execute, wait, storage) as how:
        change = api.bootstrap(
            new,
            app=app,
            state=tables,
            start=start,
            conf=options.spark_settings(master, conf),
            settings=parse_settings(settings),
            scratch=scratch,
            **script,
            carrying=how,
        )
    changing.show(change, as_json, out)
