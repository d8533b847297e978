"""`floodmark demo`: see a stream killed and brought back, on this machine."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import click

from floodmark import api
from floodmark.cli import options
from floodmark.cli.text import echo
from floodmark.errors import NoAnswer

if TYPE_CHECKING:
    from floodmark.api.running import Story, StoryBatch


@click.command("demo")
@click.option(
    "--folder",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("data/demo"),
    show_default=True,
    help="Where its files and its checkpoint go, and stay.",
)
@options.as_json
def command(folder: Path, as_json: bool) -> None:
    """Kill a stream in the middle of a batch, start it again, and see that nothing is lost."""
    with _teller(as_json) as tell:
        story = api.demo(folder, tell)
    if as_json:
        options.show_json(story)
    else:
        echo("\n" + render(story))
    if not story.equal:
        raise NoAnswer(
            "the totals differ from the batch query",
            f"For example {', '.join(story.differ)}.",
            "This is a bug: please report it with the folder's content.",
        )


@contextmanager
def _teller(to_stderr: bool) -> Iterator[Callable[[str], None]]:
    """Print events as they happen; on a terminal, show a spinner between them."""
    from rich.console import Console

    from floodmark.cli.text import shown, style

    began = time.monotonic()
    console = Console(stderr=to_stderr)
    waiting = console.status("Spark is starting or working …") if console.is_terminal else None

    def tell(words: str) -> None:
        loud = ("red", "bold") if words.startswith("SIGKILL") else ()
        line = f"{style(f'{time.monotonic() - began:6.1f} s', 'dim')}   {style(words, *loud)}"
        if waiting is None:
            echo(line, err=to_stderr)
        else:
            from rich.text import Text

            console.print(Text.from_ansi(shown(line)))

    with waiting or nullcontext():
        yield tell


def render(story: Story) -> str:
    from floodmark.cli.text import count, style, table

    rows = [("batch", "planned", "committed", "orders", "by", ""), *map(_row, story.batches)]
    verdict = (
        style("The totals are equal: nothing was lost, nothing was counted twice.", "green", "bold")
        if story.equal
        else style("The totals differ.", "red", "bold")
    )
    return "\n\n".join(
        [
            style("The timeline, from the checkpoint", "bold"),
            table(rows),
            table(
                [
                    ("the stream's totals", f"{story.stream_total:>16}"),
                    ("a batch query over all files", f"{story.batch_query_total:>16}"),
                ]
            )
            + f"   {count(story.customers, 'customer')}, {count(story.orders, 'order')}",
            verdict,
            "The checkpoint is still there. Try:",
            table([(f"{_called()} {words}",) for words in _suggestions(story)]),
        ]
    )


def _row(batch: StoryBatch) -> tuple[str, ...]:
    from floodmark.cli.text import clock, style

    note = style("killed in the middle, run again over the same files", "yellow")
    return (
        str(batch.batch),
        clock(batch.planned_ms),
        clock(batch.committed_ms),
        f"{batch.rows:,}",
        f"run {batch.run}",
        note if batch.run_again else "",
    )


def _called() -> str:
    """Return the command as the user can type it here: `make demo` runs one that is not on PATH."""
    return "floodmark" if shutil.which("floodmark") else sys.argv[0]


def _suggestions(story: Story) -> list[str]:
    from floodmark.cli.main import VERBS

    there = {verb for group in VERBS.values() for verb in group}
    every = [
        f"inspect {story.checkpoint}",
        f"batches {story.checkpoint}",
        f"files {story.checkpoint}",
        f"state {story.checkpoint} --limit 5",
        f"doctor {story.checkpoint}",
        f"run {story.folder}/sales.py --available-now",
    ]
    return [words for words in every if words.split()[0] in there]
