"""`floodmark offsets`: print a batch's offsets, ready for a new stream."""

from __future__ import annotations

from typing import Any

import click

from floodmark import api
from floodmark.cli import options
from floodmark.cli.text import echo
from floodmark.visible import json_visible


@click.command("offsets")
@click.argument("checkpoint", metavar="CP")
@click.option(
    "--batch", type=int, metavar="N", help="Show this batch instead of the last committed one."
)
@click.option(
    "--at",
    metavar="TIME",
    help="Show the last committed batch planned by this time: 2026-11-15T10:00:00Z.",
)
@click.option(
    "--starting-offsets", is_flag=True, help="Print only what the source's starting option takes."
)
@click.option("--source", metavar="ID", help="Show only this source.")
@options.source_kinds
@options.storage
@options.as_json
def command(
    checkpoint: str,
    batch: int | None,
    at: str | None,
    starting_offsets: bool,
    source: str | None,
    source_kinds: dict[str, str],
    storage: dict[str, Any],
    as_json: bool,
) -> None:
    """Print where the stream stood after a batch, and how a new stream begins right there."""
    found = api.offsets(checkpoint, batch, at, storage, source_kinds, source)
    if starting_offsets:
        text = found.starting_offsets
        if not as_json:
            echo(json_visible(text))
            # This goes to stderr, where a pipe does not take it for the option.
            for item in found.sources:
                if item.option is not None and item.note is not None:
                    echo(item.note, err=True)
            return
    if as_json:
        options.show_json(found)
        return
    from floodmark.cli.text import render_batches

    echo(render_batches.position(found))
