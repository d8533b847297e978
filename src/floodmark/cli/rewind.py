"""`floodmark rewind`: take a stream back to an earlier batch, time or offsets."""

from __future__ import annotations

from typing import Any

import click

from floodmark import api
from floodmark.cli import options, plan_options


@click.command("rewind")
@click.argument("checkpoint", metavar="CP")
@click.option("--to-batch", type=int, metavar="N", help="Back to the end of batch N.")
@click.option("--to-time", metavar="TIME", help="To the last batch by 2026-11-15T10:00:00Z.")
@click.option("--to-offsets", metavar="FILE", help="To offsets, as `floodmark offsets` gives them.")
@click.option(
    "--keep-identity", is_flag=True, help="Keep the query id; the plan says what follows."
)
@click.option("--sink", metavar="FOLDER", help="The file sink's output, whose log goes back too.")
@click.option(
    "--kafka",
    "--bootstrap-servers",
    "kafka",
    metavar="HOST:PORT",
    help="Ask this cluster for its offsets and their times.",
)
@click.option(
    "--table",
    metavar="PATH|NAME",
    help="The Delta or Iceberg table to ask, for a time beyond the log.",
)
@plan_options.accept("out-of-reach", "skips", "maybe-running")
@options.source_kinds
@plan_options.read_data
@plan_options.watch
@plan_options.changing
def command(checkpoint: str, **named: Any) -> None:
    """Take a stream back to the end of an earlier batch, so that it reads on from there.

    If the log no longer covers the time, it is looked up in the source: in Kafka's index by time,
    or in the history of a Delta or Iceberg table.
    """
    plan_options.carry_out(api.rewind, checkpoint, **named)
