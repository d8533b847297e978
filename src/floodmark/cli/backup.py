"""`floodmark backup`: keep a snapshot of a checkpoint, also while its query runs."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import click

from floodmark import api
from floodmark.cli import options, plan_options
from floodmark.cli.text import count, echo, size, table
from floodmark.errors import WrongUse


@click.command("backup")
@click.argument("places", metavar="CP REPO", nargs=-1, required=True)
@click.option("--keep-last", type=click.IntRange(min=1), metavar="N", help="Keep the newest N.")
@click.option(
    "--keep-daily", type=click.IntRange(min=1), metavar="N", help="Keep one a day, of N days."
)
@click.option("--check", is_flag=True, help="Read all that REPO's snapshots need. Takes no CP.")
@click.option("--list", "listing", is_flag=True, help="List REPO's snapshots. Takes no CP.")
@plan_options.changing
def command(
    places: tuple[str, ...],
    check: bool,
    listing: bool,
    storage: dict[str, Any],
    as_json: bool,
    **named: Any,
) -> int:
    """Keep a snapshot of CP in REPO. The query may go on running.

    REPO holds each content once, so a snapshot of an almost unchanged checkpoint costs
    what is new in it.
    """
    wanted = 1 if check or listing else 2
    if len(places) != wanted:
        raise WrongUse(
            "backup --check and --list take a REPO" if wanted == 1 else "backup takes CP and REPO",
            do="`floodmark backup --help` shows how it is called.",
        )
    if check:
        return _check(places[0], storage, as_json)
    if listing:
        return _list(places[0], storage, as_json)
    plan_options.carry_out(api.backup, *places, storage=storage, as_json=as_json, **named)
    return 0


def _check(repository: str, storage: dict[str, Any], as_json: bool) -> int:
    number, damage = api.check_backups(repository, storage)
    if as_json:
        options.show_json({"snapshots": number, "damage": damage})
    elif not damage:
        echo(f"{count(number, 'snapshot')}: every content is there and as it was.")
    else:
        echo(table([(item.snapshot, item.path, item.reason) for item in damage]))
        echo(
            "\nA snapshot without such a file can still be restored: --snapshot ID. If the "
            "checkpoint itself is whole, back it up into a new REPO."
        )
    return 1 if damage else 0


def _list(repository: str, storage: dict[str, Any], as_json: bool) -> int:
    found = api.snapshots(repository, storage)
    if as_json:
        shown = [
            {
                "id": item.id,
                "made_ms": item.made_ms,
                "location": item.location,
                "query_id": item.query_id,
                "batch": item.batch,
                "files": len(item.files),
                "bytes": item.bytes,
            }
            for item in found
        ]
        options.show_json({"snapshots": shown})
        return 0
    rows = [
        (item.id, _when(item.made_ms), f"batch {item.batch}", size(item.bytes), item.location)
        for item in found
    ]
    echo(table(rows) if rows else "no snapshot yet")
    return 0


def _when(made_ms: int) -> str:
    return datetime.fromtimestamp(made_ms / 1000, timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC")
