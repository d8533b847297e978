"""`floodmark scan`: find every checkpoint below a folder."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

from floodmark import api
from floodmark.addresses import public_url
from floodmark.checkpoint.views.inspection import ScanEntry
from floodmark.cli import options
from floodmark.cli.text import echo
from floodmark.progress import tell
from floodmark.visible import one_line

_MOST_SHOWN = 5


@click.command("scan")
@click.argument("roots", metavar="ROOT...", nargs=-1, required=True)
@options.storage
@options.as_json
def command(roots: tuple[str, ...], storage: dict[str, Any], as_json: bool) -> None:
    """Find every checkpoint below the ROOTs, by its shape, and say how each stands."""
    passed: list[str] = []
    entries = api.scan(
        roots, storage, pass_over=lambda path, what: passed.append(f"{public_url(path)}: {what}")
    )
    found = sorted(_counted(entries), key=lambda entry: entry.path)
    _tell_passed_over(passed)
    if as_json:
        options.show_json({"checkpoints": found})
        return
    from floodmark.cli.text import render

    echo(render.scan(found))


def _tell_passed_over(passed: list[str]) -> None:
    """Say on stderr where a checkpoint may be that nobody looked for."""
    for line in passed[:_MOST_SHOWN]:
        echo(f"not searched: {one_line(line)}", err=True)
    if len(passed) > _MOST_SHOWN:
        echo(f"not searched: {len(passed) - _MOST_SHOWN:,} more", err=True)


def _counted(entries: Iterator[ScanEntry]) -> Iterator[ScanEntry]:
    for number, entry in enumerate(entries, 1):
        tell("checkpoints", number)
        yield entry
