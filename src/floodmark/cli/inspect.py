"""`floodmark inspect`: show where a stream stands, from its checkpoint."""

from __future__ import annotations

from typing import Any

import click

from floodmark import api
from floodmark.cli import options
from floodmark.cli.text import echo
from floodmark.errors import NotACheckpoint


@click.command("inspect")
@click.argument("checkpoint", metavar="CP")
@click.option("--schema", is_flag=True, help="Operators, stores and variables with their types.")
@options.trusting(
    "DStreams: ask Spark which file it can take. This runs code of the folder's writer."
)
@options.spark
@options.source_kinds
@options.storage
@options.as_json
def command(
    checkpoint: str,
    schema: bool,
    trust: bool,
    master: str | None,
    conf: tuple[str, ...],
    source_kinds: dict[str, str],
    storage: dict[str, Any],
    as_json: bool,
) -> None:
    """Show where a stream stands: what is planned, what is committed, what comes next.

    CP is a checkpoint folder or URL. Of a declarative pipeline, CP may also be its storage or
    its spark-pipeline.yml: all of its flows are shown. Spark is started for --trust alone.
    """
    if checkpoint.endswith((".yml", ".yaml")):
        _show_flows(checkpoint, storage, as_json)
        return
    try:
        found = api.look(checkpoint, storage, source_kinds, trust, conf, master)
    except NotACheckpoint:
        if not api.has_flows(checkpoint, storage):
            raise
        _show_flows(checkpoint, storage, as_json)
        return
    flow = api.flow(checkpoint, storage)
    missing = api.missing_state(found, storage)
    schemas = api.schemas(checkpoint, storage) if schema else None
    if as_json:
        from floodmark import wire
        from floodmark.checkpoint.views.inspection import inspection

        one = inspection(found, missing, flow)
        options.show_json(
            one if schemas is None else {**wire.to_wire(one), "schemas": wire.to_wire(schemas)}
        )
        return
    from floodmark.cli.text import render

    if schemas is not None:
        from floodmark.cli.text import render_state

        echo(render_state.schemas(schemas))
        return

    if flow is not None:
        from floodmark.cli.text import render_flows

        echo(render_flows.heading(flow))
    echo(render.checkpoint(found, missing))


def _show_flows(place: str, storage: dict[str, Any], as_json: bool) -> None:
    found = api.flows(place, storage)
    if as_json:
        options.show_json(found)
        return
    from floodmark.cli.text import render_flows

    echo(render_flows.flows(found))
