"""`floodmark forget`"""

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
def command(
    checkpoint: str, execute: bool, out: str | None, storage: dict[str, Any], as_json: bool
) -> None:
    """Remove what changes have kept, and with it the way back."""
    with changing.carrying(execute, None, storage) as how:
        change = api.forget(checkpoint, carrying=how)
    changing.show(change, as_json, out)
