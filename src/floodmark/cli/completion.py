"""Prints the completion script for bash, zsh and fish, and answers its questions."""

from __future__ import annotations

from typing import Any

import click

_PLACES = ("APP", "CP", "FILE", "PATH", "DIR", ".json", ".py")


def show(context: click.Context, shell: str, variable: str) -> None:
    """Print the script for a shell; the script asks by setting the variable."""
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None
    click.echo(kind(context.command, {}, "floodmark", variable).source())
    context.exit()


def completed(command: click.Command) -> click.Command:
    """Add completion to a command: files for its paths, and rules for `explain`."""
    for parameter in command.params:
        named = (parameter.metavar or parameter.name or "").upper()
        if command.name == "explain" and isinstance(parameter, click.Argument):
            parameter._custom_shell_complete = _rules
        elif isinstance(parameter.type, click.types.StringParamType) and (
            isinstance(parameter, click.Argument) or any(part.upper() in named for part in _PLACES)
        ):
            parameter._custom_shell_complete = _files
    return command


def _files(_context: click.Context, _parameter: click.Parameter, begun: str) -> list[Any]:
    from click.shell_completion import CompletionItem

    return [CompletionItem(begun, type="file")]


def _rules(_context: click.Context, _parameter: click.Parameter, begun: str) -> list[Any]:
    from click.shell_completion import CompletionItem

    from floodmark.rules.registry import all_rules

    return [
        CompletionItem(name, help=known.rule.finds)
        for known in all_rules()
        for name in (known.rule.code, known.rule.name)
        if name.startswith(begun)
    ]
