"""`floodmark diff`: compare two checkpoints, or two batches of one."""

from __future__ import annotations

from typing import Any

import click

from floodmark import api
from floodmark.cli import options
from floodmark.cli.text import echo


@click.command("diff")
@click.argument("left", metavar="CP")
@click.argument("right", metavar="[OTHER]", required=False)
@options.batches("Two batches of one checkpoint.")
@click.option(
    "--state/--no-state",
    "with_state",
    default=None,
    help="Compare the state key by key, or leave it out. [default: where its extra is there]",
)
@options.source_kinds
@options.storage
@options.as_json
def command(
    left: str,
    right: str | None,
    batches: tuple[int, int] | None,
    with_state: bool | None,
    source_kinds: dict[str, str],
    storage: dict[str, Any],
    as_json: bool,
) -> int:
    """Compare two checkpoints, or with --batches two batches of one. Exits 1 if they differ."""
    found = api.diff(left, right, batches, storage, source_kinds)
    if with_state is None and (missing := api.missing_for_state()):
        with_state = False
        echo(
            f"The state is not compared: that needs {', '.join(missing)}. "
            'Install them with: pip install "floodmark[state]"',
            err=True,
        )
    state = api.diff_state(left, right, batches, storage) if with_state is not False else ()
    if as_json:
        options.show_json({"differences": found, "state": state})
    else:
        from floodmark.cli.text import render

        names = (left, right) if right else (f"batch {batches[0]}", f"batch {batches[1]}")  # type: ignore[index]
        is_whole = all(item.keys is not None for item in state)
        echo(render.differences(found, *names, is_whole))
        if state:
            from floodmark.cli.text import render_state

            echo("\n" + render_state.differences(state))
    return 1 if found or state else 0
