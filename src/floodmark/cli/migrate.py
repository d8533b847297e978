"""`floodmark migrate`: make a checkpoint for changed code, with the state carried over."""

from __future__ import annotations

from typing import Any

import click

from floodmark import api
from floodmark.cli import options, plan_options
from floodmark.cli.text import echo


@click.command("migrate", cls=options.TakesScript)
@click.argument("checkpoint", metavar="CP")
@click.argument("new", metavar="NEW", required=False)
@click.option("--app", required=True, metavar="APP.py[:P]", help="The new code.")
@options.with_file("MIGRATION.py", "Functions that turn old rows into new ones.")
@click.option("--skeleton", is_flag=True, help="Print a MIGRATION.py to begin with.")
@click.option(
    "--old",
    "--from-app",
    "from_app",
    metavar="OLD.py[:P]",
    help="The code that made CP, where no note of its start tells.",
)
@options.old_ref
@click.option("--rename", multiple=True, metavar="OLD=NEW", help="A column has another name now.")
@click.option("--default", multiple=True, metavar="COLUMN=VALUE", help="What a new column holds.")
@click.option(
    "--merge",
    multiple=True,
    metavar="COLUMN=HOW",
    help="Combine rows whose keys become one: sum, min, max, any.",
)
@click.option(
    "--accept",
    multiple=True,
    metavar="NAME",
    help="What is meant: dropped-operator, dropped-keys, dropped-source, or a rule that a refusal "
    "names.",
)
@click.option(
    "--start",
    multiple=True,
    metavar="SOURCE=WHERE",
    help="Where a source that is new begins: earliest, latest, an offset as JSON or a file with "
    "one; source:N goes on where source N of CP stood.",
)
@click.option("--partitions", type=int, metavar="N", help="Another number of partitions.")
@click.option("--provider", metavar="rocksdb|hdfs", help="Another provider of the state.")
@click.option("--state-format", type=int, metavar="1|2", help="2: state files with unique ids.")
@click.option("--drop-in-flight", is_flag=True, help="Go back to the last commit.")
@click.option("--on-spark", is_flag=True, help="Let Spark's executors rewrite the state.")
@click.option("--scratch", metavar="URL", help="Where executors put rows; shared storage.")
@options.settings
@options.script
@options.spark
@plan_options.changing
def command(
    checkpoint: str, new: str | None, skeleton: bool, storage: dict[str, Any], **named: Any
) -> None:
    """Make NEW, a checkpoint for changed code, with CP's state carried over.

    Columns of the state are matched automatically where only one match is possible. Sources are
    matched by what they read: those that stay go on, a new one begins where --start or the code
    says, and one that is gone is dropped. CP is not changed. Spark runs the new code once, without
    rows, to find out which state it keeps.

    For a flow of a declarative pipeline APP is its spark-pipeline.yml, and NEW is one number
    higher unless it is given: the pipeline goes on from there.

    --partitions, --provider and --state-format change how the state is kept, in the same pass.
    """
    if skeleton:
        asked = {name: named[name] for name in ("app", *options.OF_CODE)}
        echo(api.skeleton(checkpoint, storage=storage, **asked))
        return
    new = plan_options.new_place(checkpoint, new, storage)
    plan_options.carry_out(api.migrate, checkpoint, new, storage=storage, **named)
