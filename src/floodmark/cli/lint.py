"""`floodmark lint`"""

from __future__ import annotations

import click

from floodmark import api
from floodmark.cli import options
from floodmark.cli.words import echo


@click.command("lint")
@click.argument("paths", metavar="FILE|DIR…", nargs=-1, required=True)
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "sarif", "github"]),
    help="sarif for code scanning, github for a workflow's annotations.",
)
@options.as_json
def command(paths: tuple[str, ...], form: str | None, as_json: bool) -> int:
    """Say what will hurt in streaming code, without running it: Python files and notebooks.

    A comment on the line allows a finding: # floodmark: allow shared-checkpoint.
    Exits 1 if there is an error or a warning.
    """
    from floodmark.cli import findings
    from floodmark.rules.finding import is_bad

    if as_json and form not in (None, "json"):
        raise click.UsageError(f"--json and --format {form} ask for two forms: give one of them")
    found = api.lint(paths)
    if as_json or form == "json":
        options.show_json({"findings": found})
    elif form == "sarif":
        options.show_json(findings.sarif(found))
    elif form == "github":
        if found:
            echo(findings.github(found), commands=True)
    elif found:
        echo(findings.text(found))
        echo(f"\n{findings.summary(found)}.")
    else:
        echo("Nothing found.")
    return 1 if is_bad(found) else 0
