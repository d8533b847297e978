"""`floodmark compact`: remove files that nothing needs any more."""

from __future__ import annotations

from typing import Any

import click

from floodmark import api
from floodmark.cli import plan_options


@click.command("compact")
@click.argument("checkpoint", metavar="CP")
@click.option(
    "--keep",
    type=click.IntRange(min=1),
    metavar="N",
    help="Batches that stay, to go back to; as the last start was set, or 100.",
)
@click.option("--sink", metavar="FOLDER", help="The file sink's output, whose log is compacted.")
@plan_options.accept("maybe-running")
@plan_options.watch
@plan_options.changing
def command(checkpoint: str, accept: tuple[str, ...], **named: Any) -> None:
    """Remove files that neither a start nor a rewind to a kept batch needs."""
    plan_options.carry_out(api.compact, checkpoint, doubts=accept, **named)
