"""`floodmark restore`"""

from __future__ import annotations

from typing import Any

import click

from floodmark import api
from floodmark.cli import changing


@click.command("restore")
@click.argument("repository", metavar="REPO")
@click.argument("checkpoint", metavar="CP")
@click.option("--snapshot", metavar="ID", help="Not the newest one; see `backup --list REPO`.")
@changing.accept("another-query")
@changing.read_data
@changing.changing
def command(
    repository: str,
    checkpoint: str,
    snapshot: str | None,
    accept: tuple[str, ...],
    read_data: bool,
    execute: bool,
    out: str | None,
    wait: float | None,
    storage: dict[str, Any],
    as_json: bool,
) -> None:
    """Bring a checkpoint back from a snapshot, to where it was or anywhere else.

    What stands at CP now is kept until `floodmark forget`.
    """
    with changing.carrying(execute, wait, storage, read_data) as how:
        change = api.restore(repository, checkpoint, snapshot=snapshot, accept=accept, carrying=how)
    changing.show(change, as_json, out)
