"""`floodmark apply`: execute a saved plan."""

from __future__ import annotations

from typing import Any

import click

from floodmark import api
from floodmark.cli import options, plan_options


@click.command("apply")
@click.argument("plan", metavar="[PLAN.json]", required=False)
@click.option("--resume", metavar="CP", help="Go on with a change of CP that stopped midway.")
@click.option(
    "--from", "origin", metavar="PLACE", help="What the change that stopped midway reads from."
)
@click.option("--sink", metavar="FOLDER", help="The file sink's output, if its log is changed.")
@click.option("--execute", is_flag=True, help="With --resume: carry it out, not only show it.")
@click.option(
    "--wait",
    type=options.Seconds(min=0),
    metavar="SECONDS",
    help="Wait this long for a running query to stop.",
)
@plan_options.read_data
@options.storage
@options.as_json
def command(
    plan: str | None, resume: str | None, origin: str | None, execute: bool, **named: Any
) -> None:
    """Execute a saved plan, if nothing has changed since it was made.

    With --resume CP: show the plan of a change that stopped midway in CP, and with --execute go on
    with it. A place outside of CP is read or changed only if --from or --sink names it.
    """
    if (plan is None) == (resume is None):
        raise click.UsageError("Give either a saved plan, or --resume CP.")
    if plan is None:
        plan_options.carry_out(api.resume, str(resume), origin=origin, execute=execute, **named)
        return
    if origin is not None:
        raise click.UsageError("--from goes with --resume: a saved plan names its origin.")
    plan_options.carry_out(api.apply, plan, execute=True, **named)
