"""`floodmark undo`: take back the last change of a checkpoint."""

from __future__ import annotations

from typing import Any

import click

from floodmark import api
from floodmark.cli import options, plan_options


@click.command("undo")
@click.argument("checkpoint", metavar="CP")
@click.option("--sink", metavar="FOLDER", help="The file sink's output, whose log goes back too.")
@plan_options.accept("maybe-running")
@plan_options.watch
@plan_options.execute
@plan_options.out
@options.storage
@options.as_json
def command(checkpoint: str, accept: tuple[str, ...], **named: Any) -> None:
    """Take back the last change of a checkpoint, whole or half done."""
    plan_options.carry_out(api.undo, checkpoint, doubts=accept, **named)
