"""`floodmark undo`"""

from __future__ import annotations

from typing import Any

import click

from floodmark import api
from floodmark.cli import changing, options


@click.command("undo")
@click.argument("checkpoint", metavar="CP")
@click.option("--sink", metavar="FOLDER", help="The file sink's output, whose log goes back too.")
@changing.accept("maybe-running")
@changing.watch
@changing.execute
@changing.out
@options.storage
@options.as_json
def command(
    checkpoint: str,
    sink: str | None,
    accept: tuple[str, ...],
    watch: float,
    execute: bool,
    out: str | None,
    storage: dict[str, Any],
    as_json: bool,
) -> None:
    """Take back the last change of a checkpoint, whole or half done."""
    with changing.carrying(execute, None, storage, accept=accept, watch=watch) as how:
        change = api.undo(checkpoint, sink=sink, carrying=how)
    changing.show(change, as_json, out)
