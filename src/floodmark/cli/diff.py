"""`floodmark diff`"""

from __future__ import annotations

from typing import Any

import click

from floodmark import api
from floodmark.cli import options


def _range(_ctx: click.Context, _option: click.Parameter, value: str | None) -> Any:
    if value is None:
        return None
    first, dots, last = value.partition("..")
    if not (dots and first.isdecimal() and last.isdecimal()):
        raise click.BadParameter(f"{value!r} is not two batches such as 5..7")
    return int(first), int(last)


@click.command("diff")
@click.argument("left", metavar="CP")
@click.argument("right", metavar="[OTHER]", required=False)
@click.option("--batches", metavar="A..B", callback=_range, help="Two batches of one checkpoint.")
@options.storage
@options.as_json
def command(
    left: str,
    right: str | None,
    batches: tuple[int, int] | None,
    storage: dict[str, Any],
    as_json: bool,
) -> int:
    """Compare two checkpoints, or with --batches two batches of one. Exits 1 if they differ."""
    found = api.diff(left, right, batches, storage)
    if as_json:
        options.show_json({"differences": found})
    else:
        from floodmark.cli import render

        names = (left, right) if right else (f"batch {batches[0]}", f"batch {batches[1]}")  # type: ignore[index]
        click.echo(render.differences(found, *names))
    return 1 if found else 0
