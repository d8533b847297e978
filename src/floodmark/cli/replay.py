"""`floodmark replay`: run a past batch again, on a fork: rows, state, time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from floodmark import api
from floodmark.cli import options
from floodmark.cli.text import echo, say

if TYPE_CHECKING:
    from floodmark.api.proving import Replay


@click.command("replay", cls=options.TakesScript)
@click.argument("checkpoint", metavar="CP")
@click.option("--batch", type=int, metavar="N", help="The batch to run again.")
@options.batches("Several, each from the state that the one before it leaves.")
@click.option(
    "--app", metavar="APP.py[:NAME]", help="The code. [default: what the last start noted]"
)
@options.settings
@options.key('Show one key only, or some of its fields: {"customerId": "c1"}.')
@options.limit("Show at most N rows and keys; 20 for people, 100 with --json.")
@click.option("--export", metavar="DIR", help="All rows put out, as Parquet, into an empty folder.")
@click.option(
    "--call-foreach-batch",
    is_flag=True,
    help="Call the query's foreachBatch function, with all that it does. once.sql is rolled back "
    "and once.delta and once.iceberg write nothing; anything else that it writes is written.",
)
@click.option(
    "--scratch",
    metavar="DIR",
    help="An empty folder for the fork; on CP's disk, state is linked and not copied.",
)
@options.proof
def command(
    checkpoint: str, batch: int | None, limit: int | None, as_json: bool, **named: Any
) -> int:
    """Run a past batch again, on a fork, and show what it computes.

    The batch begins with the state before it and reads exactly the offsets that it was planned
    with. Rows go to a table here and not to the sink; checkpoint and sink stay as they are.
    Exits 1 if the state after it is not the one that the checkpoint has: then the code is not
    deterministic, or not the code that ran.
    """
    several = named["batches"] is not None
    with options.only_the_document(as_json):
        found = api.replay(
            checkpoint,
            batch,
            limit=limit or (100 if as_json else 20),
            stdout_to_stderr=as_json,
            say=lambda words: say(words) if several else None,
            **named,
        )
    if as_json:
        options.show_json(document(found, single=batch is not None))
    else:
        from floodmark.cli.text import render_replay

        echo(render_replay.text(found, of_key=named.get("key") is not None))
    return 1 if found.matches_checkpoint is False else 0


def document(found: Replay, single: bool) -> dict[str, Any]:
    """Return the document: one batch is the document itself, several are a list."""
    from floodmark.wire import to_wire

    about = {
        "checkpoint": found.checkpoint,
        "application": found.application,
        "same_code": found.same_code,
        "foreach_batch": found.foreach_batch,
    }
    if single:
        (one,) = found.batches
        return {**to_wire(one), **about}
    return {
        "batches": to_wire(found.batches),
        "matches_checkpoint": found.matches_checkpoint,
        **about,
    }
