"""`floodmark explain`: explain a rule: what, why, what to do instead."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from floodmark import api
from floodmark.cli import options
from floodmark.cli.text import echo, style, table, wrapped

if TYPE_CHECKING:
    from floodmark.rules.finding import Rule

_WIDTH = 92
_LABEL = 16


@click.command("explain")
@click.argument("rule", metavar="[CODE|NAME]", required=False)
@click.option("--all", "every", is_flag=True, help="List every rule.")
@options.as_json
def command(rule: str | None, every: bool, as_json: bool) -> None:
    """Explain a rule: what it finds, why it matters, what to do instead."""
    if every == (rule is not None):
        raise click.UsageError("Give a rule's code or name, or --all.")
    found = api.explain(rule)
    if as_json:
        told = [_wire(item) for item in found]
        options.show_json({"rules": told} if every else told[0])
    elif every:
        echo(table([(item.code, item.name, item.severity.value) for item in found], ""))
    else:
        echo(story(found[0]))


def _wire(rule: Rule) -> dict[str, Any]:
    """Return a rule with the names that findings use."""
    return {
        "code": rule.code,
        "rule": rule.name,
        "severity": rule.severity.value,
        "finds": rule.finds,
        "why": rule.matters,
        "restart": rule.restart,
        "do": rule.instead,
        "repairable": rule.repairable,
    }


def story(rule: Rule) -> str:
    parts = (
        ("What it finds", rule.finds),
        ("Why it matters", rule.matters),
        ("On a restart", rule.restart),
        ("Instead", rule.instead),
        ("Severity", rule.severity.value),
    )
    lines = [style(f"{rule.name} ({rule.code})", "bold")]
    for label, words in parts:
        lines += wrapped(label.ljust(_LABEL), words, _WIDTH)
    return "\n".join(lines)
