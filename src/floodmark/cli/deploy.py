"""`floodmark deploy`: write a systemd unit, a Kubernetes manifest or a YARN service."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from floodmark import api
from floodmark.api.deploying import TARGETS
from floodmark.cli.text import echo


@click.command("deploy", context_settings={"ignore_unknown_options": False})
@click.argument("target", type=click.Choice(TARGETS))
@click.argument("application", metavar="APP.py[:PIPELINE]")
@click.argument("arguments", nargs=-1, metavar="[-- RUN OPTIONS…]")
@click.option("--name", help="The service's name. [default: the pipeline's, or the file's]")
@click.option(
    "--grace",
    "grace_seconds",
    type=click.IntRange(min=1),
    default=600,
    show_default=True,
    metavar="SECONDS",
    help="How long a stop waits for the running batch.",
)
@click.option(
    "--health-port", type=click.IntRange(1, 65535), help="Answer probes there. [kubernetes: 8080]"
)
@click.option("--user", help="The user that systemd runs it as.")
@click.option("--image", help="The container's image; APP.py is then a path inside it.")
@click.option("--folder", help="Where it runs. [default: the application's folder]")
@click.option("--memory", "memory_mb", type=int, default=2048, show_default=True, metavar="MB")
@click.option("--cpus", type=int, default=1, show_default=True)
@click.option(
    "-o",
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write it there instead of to standard output.",
)
def command(target: str, application: str, out: Path | None, **named: Any) -> None:
    """Write the unit or manifest that runs an application as a service.

    One driver, a stop that waits for the running batch, restarts that fit the exit statuses.
    """
    text = api.deploy(target, application, out=out, **named)
    if out is None:
        echo(text.removesuffix("\n"))
    else:
        echo(f"{out} is written.")
