"""`floodmark convert`: keep the state in RocksDB instead of HDFS files, or back."""

from __future__ import annotations

from typing import Any

import click

from floodmark import api
from floodmark.cli import options, plan_options


@click.command("convert")
@click.argument("checkpoint", metavar="CP")
@click.argument("new", metavar="NEW", required=False)
@click.option(
    "--provider",
    type=click.Choice(["rocksdb", "hdfs"]),
    help="What keeps the state in NEW.",
)
@click.option(
    "--state-format",
    type=click.IntRange(1, 2),
    metavar="1|2",
    help="RocksDB's checkpoint format; 2 has unique ids (Spark 4.0). As before, if left out.",
)
@options.source_names
@click.option("--on-spark", is_flag=True, help="Let the executors of a Spark session do it.")
@options.spark
@plan_options.changing
def command(checkpoint: str, new: str | None, storage: dict[str, Any], **named: Any) -> None:
    """Make NEW, the same stream in another form.

    --provider: its state is kept by another provider. --name: Spark 4.3 knows its sources by name,
    so that they can be added, removed and reordered. CP is not touched.
    """
    new = plan_options.new_place(checkpoint, new, storage)
    plan_options.carry_out(api.convert, checkpoint, new, storage=storage, **named)
