"""`floodmark forget`: remove what changes have kept."""

from __future__ import annotations

from typing import Any

import click

from floodmark import api
from floodmark.cli import changing, options


@click.command("forget")
@click.argument("checkpoint", metavar="CP")
@changing.execute
@changing.out
@options.storage
@options.as_json
def command(checkpoint: str, **named: Any) -> None:
    """Remove what changes have kept, and with it the way back."""
    changing.carry_out(api.forget, checkpoint, **named)
