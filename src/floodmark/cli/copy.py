"""`floodmark copy`: copy a checkpoint to another place, with its paths corrected."""

from __future__ import annotations

from typing import Any

import click

from floodmark import api
from floodmark.cli import plan_options


@click.command("copy")
@click.argument("checkpoint", metavar="CP")
@click.argument("dest", metavar="DEST")
@click.option("--new-identity", is_flag=True, help="A fork: a query of its own, with a new id.")
@click.option(
    "--rehome",
    multiple=True,
    metavar="OLD=NEW",
    help="Input and output files moved from OLD to NEW.",
)
@click.option("--sink", metavar="FOLDER", help="The file sink's output folder, where it is now.")
@plan_options.read_data
@plan_options.changing
def command(checkpoint: str, dest: str, **named: Any) -> None:
    """Copy a checkpoint to another place or storage, with its paths corrected."""
    plan_options.carry_out(api.copy, checkpoint, dest, **named)
