"""`floodmark forget`: remove what changes have kept."""

from __future__ import annotations

from typing import Any

import click

from floodmark import api
from floodmark.cli import options, plan_options


@click.command("forget")
@click.argument("checkpoint", metavar="CP")
@plan_options.execute
@plan_options.out
@options.storage
@options.as_json
def command(checkpoint: str, **named: Any) -> None:
    """Remove what changes have kept, and with it the way back."""
    plan_options.carry_out(api.forget, checkpoint, **named)
