"""`floodmark lint`: say what will hurt in streaming code, without running it."""

from __future__ import annotations

import click

from floodmark import api
from floodmark.cli import options
from floodmark.cli.text import ci_reports, echo


@click.command("lint")
@click.argument("paths", metavar="FILE|DIR…", nargs=-1, required=True)
@ci_reports.option("text", "json")
@options.as_json
def command(paths: tuple[str, ...], form: str | None, as_json: bool) -> int:
    """Say what will hurt in streaming code, without running it: Python, notebooks, pipelines.

    A comment on the line allows a finding: # floodmark: allow shared-checkpoint.
    Exits 1 if there is an error or a warning.
    """
    from floodmark.cli.text import finding
    from floodmark.rules.finding import is_bad

    ci_reports.refuse_two_forms(form, as_json)
    found = api.lint(paths)
    if as_json or form == "json":
        options.show_json({"findings": found})
    elif form in ci_reports.FORMS:
        ci_reports.show(found, form)
    elif found:
        echo(finding.text(found))
        echo(f"\n{finding.summary(found)}.")
    else:
        echo("Nothing found.")
    return 1 if is_bad(found) else 0
