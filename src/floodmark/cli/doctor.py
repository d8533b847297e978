"""`floodmark doctor`: say whether a checkpoint is sound, and what to do if not."""

from __future__ import annotations

from typing import Any

import click

from floodmark.addresses import public_url
from floodmark.api import judging
from floodmark.cli import options
from floodmark.cli.text import ci_reports, echo


def _share(_ctx: click.Context, _option: click.Parameter, value: str | None) -> float | None:
    if value is None:
        return None
    try:
        share = float(value.removesuffix("%")) / 100
    except ValueError:
        share = -1.0
    if not (value.endswith("%") and 0 < share <= 1):
        raise click.BadParameter(f"{value!r} is not a part such as 10%")
    return share


@click.command("doctor")
@click.argument("checkpoint", metavar="CP")
@click.option("--read-data", is_flag=True, help="Also read every state file to its last byte.")
@click.option(
    "--read-data-subset",
    metavar="10%",
    callback=_share,
    help="Read that part of the state files, the same part each time.",
)
@click.option(
    "--sources",
    is_flag=True,
    help="Also ask Kafka, the Delta or Iceberg table, the input folder, where the notes say that "
    "they are.",
)
@click.option(
    "--bootstrap-servers",
    "--kafka",
    "bootstrap_servers",
    metavar="HOST:PORT",
    help="Kafka, if no notes name it.",
)
@click.option(
    "--table",
    metavar="PATH|NAME",
    help="The Delta or Iceberg table that is read, if no notes name it: its folder, or an Iceberg "
    "table's CATALOG.NAMESPACE.TABLE.",
)
@click.option(
    "--sink", metavar="PATH|NAME", help="Compare with the sink's Delta or Iceberg table or folder."
)
@ci_reports.option()
@options.source_kinds
@options.storage
@options.as_json
def command(
    checkpoint: str,
    read_data: bool,
    read_data_subset: float | None,
    sources: bool,
    bootstrap_servers: str | None,
    table: str | None,
    sink: str | None,
    form: str | None,
    source_kinds: dict[str, str],
    storage: dict[str, Any],
    as_json: bool,
) -> int:
    """Say whether a checkpoint is sound: what is wrong, why it matters, what to do.

    It changes nothing. Exits 1 if there is an error or a warning.
    """
    from floodmark.rules.finding import is_bad

    ci_reports.refuse_two_forms(form, as_json)
    share = 1.0 if read_data else read_data_subset
    place = public_url(checkpoint)
    places = (sources, bootstrap_servers, table, sink)
    diagnosis = judging.diagnose(checkpoint, share, storage, *places, source_kinds)
    found = diagnosis.findings
    if as_json:
        not_examined = diagnosis.left_open or None
        options.show_json({"findings": found, "sink": diagnosis.sink, "not_examined": not_examined})
    elif form is not None:
        ci_reports.show(found, form)
    else:
        from floodmark.cli.text import finding, style, wrapped

        if found:
            echo(f"{style(place, 'bold')}   {finding.summary(found)}\n")
            echo(finding.text(found))
            echo(f"\nThe whole story of a rule: floodmark explain {found[0].code}.")
            repairable = sum(item.repairable for item in found)
            if repairable:
                import shlex

                read = " --read-data" if share else ""
                asked = f" --table {shlex.quote(public_url(table))}" if table else ""
                echo(
                    f"{repairable} of {len(found)} can be repaired. This shows the plan, and "
                    f"changes nothing:\n  floodmark repair {shlex.quote(place)}{read}{asked}"
                )
        else:
            echo(f"{place} is sound: no rule found anything.")
        if diagnosis.sink is not None:
            newest = diagnosis.sink.newest
            has = "no batch" if newest is None else f"batch {newest}"
            echo(f"The newest that the sink {public_url(diagnosis.sink.place)} has: {has}.")
        if diagnosis.left_open:
            echo("\n".join(wrapped("", diagnosis.left_open, 96)))
    return 1 if is_bad(found) else 0
