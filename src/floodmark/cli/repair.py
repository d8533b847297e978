"""`floodmark repair`: repair what doctor found, with the smallest change."""

from __future__ import annotations

from functools import partial
from typing import Any

import click

from floodmark import api
from floodmark.cli import plan_options

RISKS = ("repeats", "changed-files", "unchanged-query", "maybe-running")


@click.command("repair")
@click.argument("checkpoint", metavar="CP")
@click.option(
    "--accept",
    multiple=True,
    type=click.Choice(RISKS),
    help="Accept what the plan names: records that come twice, content that was changed, a start "
    "that compares nothing, a query that may still run.",
)
@click.option("--from-backup", metavar="REPO", help="Take lost files from a backup repository.")
@click.option(
    "--sink", metavar="PLACE", help="The sink's Delta or Iceberg table, or folder of files."
)
@click.option(
    "--table",
    metavar="PATH|NAME",
    help="The Iceberg table that is read: repair what `doctor --table` finds about where the "
    "stream began.",
)
@click.option("--read-data", is_flag=True, help="Also repair what `doctor --read-data` finds.")
@plan_options.watch
@plan_options.changing
def command(checkpoint: str, read_data: bool, **named: Any) -> int:
    """Repair what `doctor` finds in a checkpoint, with the smallest change, and say what it costs.

    Exits 1 if the checkpoint is not sound and nothing could be repaired.
    """
    change = plan_options.carry_out(partial(api.repair, read_data=read_data), checkpoint, **named)
    return 1 if not change.plan.steps and change.plan.notes else 0
