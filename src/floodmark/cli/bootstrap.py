"""`floodmark bootstrap`: make a first checkpoint with state from a table."""

from __future__ import annotations

from typing import Any

import click

from floodmark import api
from floodmark.cli import options, plan_options


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
@plan_options.changing
def command(new: str, state: tuple[str, ...], **named: Any) -> None:
    """Make NEW, a first checkpoint for a stream, with state computed by a batch job.

    The columns are named as `floodmark state` shows the key's and the value's.
    """
    tables = {}
    for one in state:
        operator, equals, table = one.partition("=")
        known = bool(equals) and operator.partition("/")[0].isdecimal()
        tables[operator if known else "0"] = table if known else one
    plan_options.carry_out(api.bootstrap, new, state=tables, **named)
