"""`floodmark inspect`"""

from __future__ import annotations

from typing import Any

import click

from floodmark import api, wire
from floodmark.checkpoint.inspection import inspection
from floodmark.cli import options
from floodmark.cli.words import echo


@click.command("inspect")
@click.argument("checkpoint", metavar="CP")
@click.option("--schema", is_flag=True, help="Operators, stores and variables with their types.")
@options.source_kinds
@options.storage
@options.as_json
def command(
    checkpoint: str,
    schema: bool,
    source_kinds: dict[str, str],
    storage: dict[str, Any],
    as_json: bool,
) -> None:
    """Show where a stream stands: what is planned, what is committed, what comes next.

    CP is a checkpoint folder or URL.
    """
    found = api.look(checkpoint, storage, source_kinds)
    missing = api.missing_state(found, storage)
    schemas = api.schemas(checkpoint, storage) if schema else None
    if as_json:
        shown = inspection(found, missing)
        options.show_json(
            shown if schemas is None else {**wire.to_wire(shown), "schemas": wire.to_wire(schemas)}
        )
        return
    from floodmark.cli import render

    if schemas is not None:
        from floodmark.cli import render_state

        echo(render_state.schemas(schemas))
        return

    echo(render.checkpoint(found, missing))
