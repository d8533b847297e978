"""`floodmark scan`"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import click

from floodmark import api
from floodmark.checkpoint.inspection import ScanEntry
from floodmark.cli import options
from floodmark.cli.words import echo, end_waiting
from floodmark.visible import one_line


@click.command("scan")
@click.argument("roots", metavar="ROOT...", nargs=-1, required=True)
@options.storage
@options.as_json
def command(roots: tuple[str, ...], storage: dict[str, Any], as_json: bool) -> None:
    """Find every checkpoint below the ROOTs, by its shape, and say how each stands."""
    found = sorted(_with_progress(api.scan(roots, storage)), key=lambda entry: entry.path)
    if as_json:
        options.show_json({"checkpoints": found})
        return
    from floodmark.cli import render

    echo(render.scan(found))


def _with_progress(entries: Iterator[ScanEntry]) -> Iterator[ScanEntry]:
    if not sys.stderr.isatty():
        yield from entries
        return
    from rich.console import Console
    from rich.markup import escape

    end_waiting()
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("looking for checkpoints")
        for number, entry in enumerate(entries, 1):
            words = escape(one_line(entry.path))
            progress.update(task, description=f"{number} checkpoints, last {words}")
            yield entry
