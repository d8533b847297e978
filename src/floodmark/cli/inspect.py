"""`floodmark inspect`"""

from __future__ import annotations

from typing import Any

import click

from floodmark import api
from floodmark.checkpoint.inspection import inspection
from floodmark.cli import options
from floodmark.cli.words import echo


@click.command("inspect")
@click.argument("checkpoint", metavar="CP")
@options.source_kinds
@options.storage
@options.as_json
def command(
    checkpoint: str, source_kinds: dict[str, str], storage: dict[str, Any], as_json: bool
) -> None:
    """Show where a stream stands: what is planned, what is committed, what comes next.

    CP is a checkpoint folder or URL.
    """
    found = api.look(checkpoint, storage, source_kinds)
    missing = api.missing_state(found, storage)
    if as_json:
        options.show_json(inspection(found, missing))
        return
    from floodmark.cli import render

    echo(render.checkpoint(found, missing))
