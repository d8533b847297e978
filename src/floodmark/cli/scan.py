"""`floodmark scan`: find every checkpoint below a folder."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

from floodmark import api
from floodmark.checkpoint.views.inspection import ScanEntry
from floodmark.cli import options
from floodmark.cli.text import echo
from floodmark.progress import tell


@click.command("scan")
@click.argument("roots", metavar="ROOT...", nargs=-1, required=True)
@options.storage
@options.as_json
def command(roots: tuple[str, ...], storage: dict[str, Any], as_json: bool) -> None:
    """Find every checkpoint below the ROOTs, by its shape, and say how each stands."""
    found = sorted(_counted(api.scan(roots, storage)), key=lambda entry: entry.path)
    if as_json:
        options.show_json({"checkpoints": found})
        return
    from floodmark.cli.text import render

    echo(render.scan(found))


def _counted(entries: Iterator[ScanEntry]) -> Iterator[ScanEntry]:
    for number, entry in enumerate(entries, 1):
        tell("checkpoints", number)
        yield entry
