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
@click.option(
    "--keep-identity", is_flag=True, help="Keep the query id; the plan says what follows."
)
@click.option("--sink", metavar="FOLDER", help="The file sink's output, whose log goes back too.")
@changing.accept("another-query", "repeats", "skips", "loses", "out-of-reach", "maybe-running")
@changing.read_data
@changing.watch
@changing.changing
def command(
    repository: str,
    checkpoint: str,
    snapshot: str | None,
    keep_identity: bool,
    sink: str | None,
    accept: tuple[str, ...],
    read_data: bool,
    watch: float,
    execute: bool,
    out: str | None,
    wait: float | None,
    storage: dict[str, Any],
    as_json: bool,
) -> None:
    """Bring a checkpoint back from a snapshot, to where it was or anywhere else.

    The plan says what each sink gets: where the query ran on after the snapshot, it is given a
    new id, and a file sink's log is taken back, so that no sink skips a batch with other records
    in it. Records that come
    twice or are lost have to be accepted by name.

    What is at CP now is kept until `floodmark forget`.
    """
    with changing.carrying(execute, wait, storage, read_data, watch=watch) as how:
        change = api.restore(
            repository,
            checkpoint,
            snapshot=snapshot,
            keep_identity=keep_identity,
            sink=sink,
            accept=accept,
            carrying=how,
        )
    changing.show(change, as_json, out)
