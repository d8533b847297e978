"""`floodmark serve`: show every stream below a folder on a page, live."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import click

from floodmark import api
from floodmark.cli import options
from floodmark.cli.text import echo

_LEAVE_SECONDS = 2.0


def _number(option: str, default: float, unit: str, words: str) -> Callable[..., Any]:
    return click.option(
        option, type=float, default=default, show_default=True, metavar=unit, help=words
    )


@click.command("serve")
@click.argument("roots", metavar="ROOT...", nargs=-1, required=True)
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option(
    "--port", type=int, default=8460, show_default=True, help="The port; 0 takes a free one."
)
@click.option(
    "--token-file",
    metavar="FILE",
    help="Ask for the token in FILE; needed with a --host that others reach.",
)
@click.option(
    "--allow-host",
    multiple=True,
    metavar="NAME",
    help="A name by which browsers reach this server, behind a proxy say; repeatable.",
)
@_number("--interval", 5.0, "SECONDS", "How often to look at every checkpoint.")
@_number(
    "--patience", 20.0, "SECONDS", "Storage that has not answered for so long makes its cards grey."
)
@click.option(
    "--history",
    metavar="FILE",
    help="Where to keep what was seen. [default: ~/.local/state/floodmark/serve.sqlite]",
)
@click.option("--no-history", is_flag=True, help="Keep what was seen in memory only.")
@_number("--keep-days", 14.0, "DAYS", "How long the history is kept.")
@click.option(
    "--notify",
    metavar="URL",
    help="Post JSON there when a stream stalls, falls behind, or gets an error finding.",
)
@click.option(
    "--sources",
    is_flag=True,
    help="Ask whatever the notes of starts name how far each stream is behind, brokers too.",
)
@options.kafka
@click.option(
    "--commit-to-group",
    metavar="NAME",
    help="Write each stream's committed offsets into a consumer group of Kafka, for other tools "
    "to see; {name} in NAME is the stream's name. Needs --kafka.",
)
@options.storage
def command(roots: tuple[str, ...], storage: dict[str, Any], **named: Any) -> None:
    """Serve a page and JSON about every checkpoint below the ROOTs, until Ctrl-C.

    Nothing is changed, and nothing but this machine can reach it unless --host says so.
    """

    def ready(served: api.Served) -> None:
        where = " and ".join(served.roots)
        echo(f"floodmark serves {where} at {served.url}", err=True)
        kept = served.history or "in memory, until it ends"
        echo(f"  JSON: {served.url}api/fleet, {served.url}openapi.json; history: {kept}", err=True)
        if served.with_token:
            echo("  The page asks for the token once; JSON takes it as a bearer token.", err=True)

    def warn(words: str) -> None:
        echo(f"floodmark: {words}", err=True)

    api.serve(roots, storage=storage, ready=ready, warn=warn, **named)
    _leave()


def _leave() -> None:
    """Leave at once: Python would wait for every thread of a pool, also for silent storage."""
    deadline = time.monotonic() + _LEAVE_SECONDS
    while any(_is_waited_for(thread) for thread in threading.enumerate()):
        if time.monotonic() > deadline:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(0)
        time.sleep(0.05)


def _is_waited_for(thread: threading.Thread) -> bool:
    ours = (threading.main_thread(), threading.current_thread())
    return not thread.daemon and thread not in ours
