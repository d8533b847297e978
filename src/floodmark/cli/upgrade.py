"""`floodmark upgrade`: make a new checkpoint that begins right after the last commit."""

from __future__ import annotations

from typing import Any

import click

from floodmark import api
from floodmark.cli import options, plan_options


@click.command("upgrade", cls=options.TakesScript)
@click.argument("checkpoint", metavar="CP")
@click.argument("new", metavar="NEW", required=False)
@click.option("--app", metavar="APP.py[:P]", help="Judge the new code's sources as check does.")
@click.option("--from-batch", type=int, metavar="N", help="Begin after batch N, not the last.")
@click.option("--new-identity", is_flag=True, help="A new query id, for a new sink.")
@click.option("--restart-numbering", is_flag=True, help="Number batches from 0, for a new sink.")
@click.option("--drop-in-flight", is_flag=True, help="Go back to the last commit.")
@click.option("--without-state", is_flag=True, help="Start with an empty state.")
@click.option(
    "--map-topic", multiple=True, metavar="OLD=NEW", help="The Kafka topic has another name now."
)
@click.option(
    "--kafka",
    "--bootstrap-servers",
    "kafka",
    metavar="HOST:PORT",
    help="Ask this cluster what it still has.",
)
@click.option("--by-time", is_flag=True, help="The cluster is a new one: find offsets by time.")
@click.option(
    "--old-kafka",
    metavar="HOST:PORT",
    help="For --by-time: the old cluster, which knows the times of its records.",
)
@options.source_kinds
@options.settings
@options.script
@plan_options.accept(
    "out-of-reach", "skips", "source-count-changed", "source-place-changed", "sources-reordered"
)
@plan_options.read_data
@plan_options.changing
def command(checkpoint: str, new: str | None, storage: dict[str, Any], **named: Any) -> None:
    """Make NEW, a checkpoint that begins exactly after CP's last committed batch.

    The batch in flight is carried over, to be run again over the same range.
    """
    new = plan_options.new_place(checkpoint, new, storage)
    plan_options.carry_out(api.upgrade, checkpoint, new, storage=storage, **named)
