"""`floodmark outline`: write down what a checkpoint is, for checks without it."""

from __future__ import annotations

import json
import shlex
from typing import Any

import click

from floodmark import api
from floodmark.cli import options
from floodmark.cli.text import echo

_NO_CODE = (
    "It does not have the code that made the checkpoint, as no start by floodmark has noted it: "
    "`check` cannot say yes by this outline alone. Note the code, and outline again:\n"
    "  floodmark check {} APP.py --old APP.py --adopt"
)


@click.command("outline")
@click.argument("checkpoint", metavar="CP")
@click.option("-o", "--out", metavar="FILE", help="Where to write it. [default: stdout]")
@click.option("--replace", is_flag=True, help="Also write over the outline of another checkpoint.")
@options.storage
def command(checkpoint: str, out: str | None, replace: bool, storage: dict[str, Any]) -> int:
    """Write down what a checkpoint is, without any of its data: for `check`, beside the code.

    Sources, plan, state schemas, settings and versions, as JSON in one order. It has no
    positions and no rows, so it changes only when the checkpoint becomes another. `floodmark
    check OUTLINE APP.py` then judges code where the checkpoint cannot be reached. A file that is
    no outline is never written over.
    """
    text = api.outline(checkpoint, out=out, replace=replace, storage=storage)
    if out is None:
        echo(text.rstrip("\n"))
    else:
        echo(f"{checkpoint} is outlined in {out}.", err=True)
    if json.loads(text)["last_start"] is None:
        echo(_NO_CODE.format(shlex.quote(checkpoint)), err=True)
    return 0
