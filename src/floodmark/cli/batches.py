"""`floodmark batches`: list the batches and what became of each."""

from __future__ import annotations

from typing import Any

import click

from floodmark import api
from floodmark.checkpoint.views.inspection import summarize_batches
from floodmark.cli import options
from floodmark.cli.text import echo


@click.command("batches")
@click.argument("checkpoint", metavar="CP")
@click.option("--last", type=int, metavar="N", help="Only the newest N.")
@options.source_kinds
@options.storage
@options.as_json
def command(
    checkpoint: str,
    last: int | None,
    source_kinds: dict[str, str],
    storage: dict[str, Any],
    as_json: bool,
) -> None:
    """List the batches that are still logged, oldest first, and what became of each."""
    found = api.batches(checkpoint, last, storage, source_kinds)
    if as_json:
        options.show_json({"batches": summarize_batches(found)})
        return
    if found and all(batch.batch == batch.time_ms for batch in found):  # named by their times
        from floodmark.cli.text import render_dstreams

        echo(render_dstreams.batches(found))
        return
    from floodmark.cli.text import render_batches

    echo(render_batches.batches(found))
