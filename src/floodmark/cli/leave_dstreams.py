"""`floodmark leave-dstreams`: bring DStreams over to Structured Streaming, with state and input."""

from __future__ import annotations

from typing import Any

import click

from floodmark import api
from floodmark.cli import options, plan_options


@click.command("leave-dstreams", cls=options.TakesScript)
@click.argument("path", metavar="CP")
@click.argument("new", metavar="NEW")
@click.option(
    "--app",
    required=True,
    metavar="APP.py[:P]",
    help="The Structured Streaming code to go on with.",
)
@options.with_file("FILE.py", "Its function state(key, value) gives the new key and value.")
@options.trusting("Unpickle a state that is not plain data: this runs code of its writer.")
@click.option(
    "--operator",
    default="0",
    show_default=True,
    metavar="N[/VARIABLE]",
    help="The new operator that takes the state.",
)
@click.option("--stream", type=int, metavar="N", help="The old stream, where several have state.")
@click.option("--scratch", metavar="URL", help="Where executors put rows; shared storage.")
@options.settings
@options.script
@options.spark
@plan_options.changing
def command(path: str, new: str, **named: Any) -> None:
    """Make NEW, a first checkpoint of Structured Streaming, from the DStreams folder CP.

    The state of updateStateByKey or mapWithState becomes the state of the new query, and its
    input goes on after what that state holds. CP stays as it is.
    """
    plan_options.carry_out(api.leave_dstreams, path, new, **named)
