"""`floodmark repartition`: spread the state over another number of partitions."""

from __future__ import annotations

from typing import Any

import click

from floodmark import api
from floodmark.cli import options, plan_options


@click.command("repartition")
@click.argument("checkpoint", metavar="CP")
@click.argument("new", metavar="NEW", required=False)
@click.option(
    "--partitions",
    type=click.IntRange(min=1),
    required=True,
    metavar="N",
    help="The new number of partitions.",
)
@click.option("--on-spark", is_flag=True, help="Let the executors of a Spark session do it.")
@options.spark
@plan_options.accept("hashed-by-all-keys")
@plan_options.changing
def command(checkpoint: str, new: str | None, storage: dict[str, Any], **named: Any) -> None:
    """Make NEW, the same stream with its state spread over another number of partitions.

    Every key goes where Spark will look for it. CP is not touched.
    """
    new = plan_options.new_place(checkpoint, new, storage)
    plan_options.carry_out(api.repartition, checkpoint, new, storage=storage, **named)
