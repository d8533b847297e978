"""`floodmark files`: list which input files each batch took."""

from __future__ import annotations

from typing import Any

import click

from floodmark import api
from floodmark.cli import options
from floodmark.cli.text import echo


@click.command("files")
@click.argument("checkpoint", metavar="CP")
@click.option("--batch", type=int, metavar="N", help="Only what this batch took.")
@click.option("--source", metavar="ID", help="Only this source's files.")
@options.storage
@options.as_json
def command(
    checkpoint: str, batch: int | None, source: str | None, storage: dict[str, Any], as_json: bool
) -> None:
    """List which input files each batch took, from the file source's own log."""
    found = api.files(checkpoint, batch, source, storage)
    if as_json:
        options.show_json({"files": found})
        return
    from floodmark.cli.text import render

    echo(render.files(found))
