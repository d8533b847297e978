"""`floodmark apply`"""

from __future__ import annotations

from typing import Any

import click

from floodmark import api
from floodmark.cli import changing, options


@click.command("apply")
@click.argument("plan", metavar="PLAN.json")
@click.option(
    "--wait",
    type=click.FloatRange(min=0),
    metavar="SECONDS",
    help="Wait this long for a running query to stop.",
)
@changing.read_data
@options.storage
@options.as_json
def command(
    plan: str, wait: float | None, read_data: bool, storage: dict[str, Any], as_json: bool
) -> None:
    """Carry out a saved plan, if everything is still as it was when it was made."""
    with changing.carrying(True, wait, storage, read_data) as how:
        change = api.apply(plan, carrying=how)
    changing.show(change, as_json)
