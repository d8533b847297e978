"""`floodmark state`: look inside the state: rows, one key, sizes, changes."""

from __future__ import annotations

from typing import Any

import click

from floodmark import api
from floodmark.cli import options
from floodmark.cli.text import echo
from floodmark.errors import NoAnswer, WrongUse

_ROWS_FOR_PEOPLE = 20
_NOT_PARQUET = (".csv", ".tsv", ".txt", ".json", ".jsonl", ".xlsx", ".avro", ".orc")


@click.command("state")
@click.argument("checkpoint", metavar="CP")
@click.option(
    "--operator",
    type=click.IntRange(0),
    default=0,
    metavar="N",
    show_default=True,
    help="The stateful operator, as `inspect` numbers them.",
)
@click.option("--store", metavar="NAME", help="A store, a join's side, or a state variable.")
@click.option(
    "--batch", type=int, metavar="N", help="After this batch instead of the last committed one."
)
@options.key('A key, or some of its fields: {"customerId": "c1"}.')
@options.limit("At most N rows; 20 for people, all with --json.")
@click.option("--stats", is_flag=True, help="Keys and bytes by partition, and how skewed they are.")
@click.option(
    "--changes",
    callback=options.batch_range,
    metavar="A..B",
    help="What changed from the end of batch A to the end of batch B.",
)
@click.option("--export", "export", metavar="FILE.parquet", help="All rows into a Parquet file.")
@click.option(
    "--key-schema", metavar="DDL", help="The key's schema, if Spark wrote none (before 3.1)."
)
@click.option("--value-schema", metavar="DDL", help="The value's schema; needs --key-schema.")
@options.trusting(
    "DStreams: unpickle a state that is not plain data, and read Kryo's through Spark. This "
    "runs code of its writer."
)
@options.spark
@options.storage
@options.as_json
def command(
    checkpoint: str,
    operator: int,
    store: str | None,
    batch: int | None,
    key: dict[str, Any] | None,
    limit: int | None,
    stats: bool,
    changes: tuple[int, int] | None,
    export: str | None,
    key_schema: str | None,
    value_schema: str | None,
    trust: bool,
    master: str | None,
    conf: tuple[str, ...],
    storage: dict[str, Any],
    as_json: bool,
) -> int:
    """Look inside the state: rows, one key, sizes, or what changed between two batches.

    Nothing starts Spark but --trust for a state of Kryo. Without options it shows the rows of
    operator 0 after the last committed batch.
    """
    if sum(option is not None for option in (key, changes, export)) + stats > 1:
        raise WrongUse(
            "--key, --changes, --export and --stats answer different questions",
            do="Ask one at a time.",
        )
    if export is not None and export.lower().endswith(_NOT_PARQUET):
        raise WrongUse(
            f"{export}: the rows are written as Parquet, and the name says something else",
            "Keys and values are nested; a text file would lose their types.",
            "Name it .parquet, or take the rows as JSON: floodmark state CP --json",
        )
    if (key_schema is None) != (value_schema is None):
        raise WrongUse("--key-schema and --value-schema go together", do="Give both or none.")
    if changes is not None:
        return _show_changes(
            api.state_changes(checkpoint, *changes, operator, store, limit or 100, storage), as_json
        )
    schema = (key_schema, value_schema) if key_schema and value_schema else None
    view = api.state(checkpoint, operator, store, batch, schema, storage, trust, conf, master)
    if stats:
        return _show_stats(view, as_json)
    if export is not None:
        rows = view.export(export)
        if as_json:
            options.show_json({"file": export, "rows": rows})
        else:
            echo(f"{rows:,} rows of batch {view.batch} written to {export}.")
        return 0
    return _show_rows(view, key, limit, as_json)


def _show_rows(view: Any, key: dict[str, Any] | None, limit: int | None, as_json: bool) -> int:
    missing = None
    if key is None:
        # One more row than is shown tells whether there are more.
        rows = view.rows(limit if as_json else (limit or _ROWS_FOR_PEOPLE) + 1)
    else:
        try:
            rows = view.lookup(key)[:limit]
        except NoAnswer as error:
            rows, missing = [], error
    if as_json:
        options.show_json(
            {
                "operator": view.operator,
                "store": view.store,
                "batch": view.batch,
                "key_schema": view.key_schema,
                "value_schema": view.value_schema,
                "rows": rows,
            }
        )
    elif missing is None:
        from floodmark.cli.text import render_state

        most = len(rows) if key is not None else limit or _ROWS_FOR_PEOPLE
        echo(render_state.rows(view, rows, most, whole=key is not None))
    if missing is not None:
        raise missing
    return 0


def _show_stats(view: Any, as_json: bool) -> int:
    found = view.stats()
    if as_json:
        options.show_json(found)
    else:
        from floodmark.cli.text import render_state

        echo(render_state.stats(view, found))
    return 0


def _show_changes(found: Any, as_json: bool) -> int:
    if as_json:
        options.show_json(found)
    else:
        from floodmark.cli.text import render_state

        echo(render_state.changes(found))
    return 0
