"""`floodmark restore`: bring a checkpoint back from a snapshot."""

from __future__ import annotations

from typing import Any

import click

from floodmark import api
from floodmark.cli import plan_options


@click.command("restore")
@click.argument("repository", metavar="REPO")
@click.argument("checkpoint", metavar="CP")
@click.option("--snapshot", metavar="ID", help="Not the newest one; see `backup --list REPO`.")
@click.option(
    "--keep-identity", is_flag=True, help="Keep the query id; the plan says what follows."
)
@click.option("--sink", metavar="FOLDER", help="The file sink's output, whose log goes back too.")
@plan_options.accept("another-query", "repeats", "skips", "loses", "out-of-reach", "maybe-running")
@plan_options.read_data
@plan_options.watch
@plan_options.changing
def command(repository: str, checkpoint: str, **named: Any) -> None:
    """Bring a checkpoint back from a snapshot, to where it was or anywhere else.

    The plan says what each sink gets: where the query ran on after the snapshot, it is given a
    new id, and a file sink's log is taken back, so that no sink skips a batch with other records
    in it. Records that come
    twice or are lost have to be accepted by name.

    What is at CP now is kept until `floodmark forget`.
    """
    plan_options.carry_out(api.restore, repository, checkpoint, **named)
