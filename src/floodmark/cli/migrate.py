"""`floodmark migrate`"""

from __future__ import annotations

from typing import Any

import click

from floodmark import api
from floodmark.cli import changing, options
from floodmark.cli.words import echo


@click.command("migrate", cls=options.TakesScript)
@click.argument("checkpoint", metavar="CP")
@click.argument("new", metavar="NEW", required=False)
@click.option("--app", required=True, metavar="APP.py[:P]", help="The new code.")
@click.option(
    "--with",
    "with_file",
    metavar="MIGRATION.py",
    help="Functions that turn old rows into new ones.",
)
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
@changing.changing
def command(
    checkpoint: str,
    new: str | None,
    app: str,
    with_file: str | None,
    skeleton: bool,
    from_app: str | None,
    old_ref: str | None,
    rename: tuple[str, ...],
    default: tuple[str, ...],
    merge: tuple[str, ...],
    accept: tuple[str, ...],
    start: tuple[str, ...],
    partitions: int | None,
    provider: str | None,
    state_format: int | None,
    drop_in_flight: bool,
    on_spark: bool,
    scratch: str | None,
    settings: tuple[str, ...],
    script: dict[str, Any],
    master: str | None,
    conf: tuple[str, ...],
    execute: bool,
    out: str | None,
    wait: float | None,
    storage: dict[str, Any],
    as_json: bool,
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
    from floodmark.api.arguments import parse_settings

    given = parse_settings(settings)
    spark = options.spark_settings(master, conf)
    if skeleton:
        echo(
            api.skeleton(checkpoint, app=app, settings=given, conf=spark, storage=storage, **script)
        )
        return
    new = changing.new_place(checkpoint, new, storage)
    with changing.carrying(execute, wait, storage) as how:
        change = api.migrate(
            checkpoint,
            new,
            app=app,
            with_file=with_file,
            from_app=from_app,
            rename=rename,
            default=default,
            merge=merge,
            accept=accept,
            conf=spark,
            partitions=partitions,
            provider=provider,
            state_format=state_format,
            drop_in_flight=drop_in_flight,
            settings=given,
            scratch=scratch,
            on_spark=on_spark,
            **script,
            old_ref=old_ref,
            start=start,
            carrying=how,
        )
    changing.show(change, as_json, out)
