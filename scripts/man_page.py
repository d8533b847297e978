"""Writes man/floodmark.1 from the commands' help: `python scripts/man_page.py [--check]`."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from floodmark import __version__
from floodmark.cli.main import VERBS
from floodmark.cli.main import floodmark as program

PAGE = Path(__file__).resolve().parents[1] / "man" / "floodmark.1"
STATUSES = {
    0: "done, sound or compatible",
    1: "the answer is no: findings, incompatible, differences",
    2: "wrong use",
    3: "not a checkpoint, or it cannot be read",
    4: "refused: the plan is stale, the checkpoint is in use, records would be lost",
    5: "stopped midway; what is printed says what to do next",
}
VARIABLES = {
    "NO_COLOR": "No colours, on a terminal as well.",
    "FLOODMARK_DEBUG": "1 shows the traceback of an error.",
    "FLOODMARK_CACHE": "Where connectors are cached; ~/.cache/floodmark without it.",
}


def page() -> str:
    return "\n".join(_page()) + "\n"


def _page() -> Iterator[str]:
    above = click.Context(program, info_name="floodmark")
    yield f'.TH FLOODMARK 1 "" "floodmark {__version__}" "User commands"'
    yield ".SH NAME"
    yield "floodmark \\- keeps Apache Spark streams going"
    yield ".SH SYNOPSIS"
    yield '.B floodmark\n.RI [ options ] " verb " ...\n.br\n.B floodmark\n.IR verb " \\-\\-help"'
    yield ".SH DESCRIPTION"
    yield from _paragraphs(program.help or "")
    yield from _paragraphs(program.epilog or "")
    yield ".SH OPTIONS"
    yield from _options(program, above)
    for title, group in VERBS.items():
        yield f".SH {title.upper()}"
        for verb in group:
            command = program.get_command(above, verb)
            assert command is not None
            context = click.Context(command, info_name=verb, parent=above)
            usage = " ".join(command.get_usage(context).removeprefix("Usage: ").split())
            yield f".SS {_text(usage)}"
            yield from _paragraphs(command.help or "")
            yield from _options(command, context)
    yield ".SH EXIT STATUS"
    for status, words in STATUSES.items():
        yield f".TP\n.B {status}\n{_text(words)}"
    yield ".SH ENVIRONMENT"
    for name, words in VARIABLES.items():
        yield f".TP\n.B {name}\n{_text(words)}"
    yield ".SH SEE ALSO"
    yield "https://floodmark.github.io/floodmark/"


def _paragraphs(text: str) -> Iterator[str]:
    for paragraph in re.split(r"\n\s*\n", inspect.cleandoc(text)):
        words = " ".join(paragraph.replace("\b", "").split())
        if words:
            yield f".PP\n{_text(words)}"


def _options(command: click.Command, context: click.Context) -> Iterator[str]:
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record is not None and record[1]:
            yield f".TP\n.B {_text(record[0])}\n{_text(' '.join(record[1].split()))}"


def _text(words: str) -> str:
    """As roff takes it: hyphens are hyphens, and no line begins with a request."""
    escaped = words.replace("\\", "\\e").replace("-", "\\-")
    escaped = escaped.replace("|", "|\\:")  # a long choice may be broken there
    escaped = "".join(c if c.isascii() else f"\\[u{ord(c):04X}]" for c in escaped)
    return f"\\&{escaped}" if escaped[:1] in ".'" else escaped


def main() -> int:
    if "--check" in sys.argv:
        current = PAGE.is_file() and PAGE.read_text() == page()
        if not current:
            print("man/floodmark.1 is not current. Run scripts/man_page.py.")
        return 0 if current else 1
    PAGE.write_text(page())
    print(PAGE.name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
