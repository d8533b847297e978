"""Writes docs/reference from the code: `python scripts/reference.py [--check]`.

A page of every verb with its help, of every function of the package, and of every field that
--json prints, with a JSON Schema a document.
"""

from __future__ import annotations

import dataclasses
import enum
import inspect
import json
import re
import sys
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import click
from json_schemas import enum_words, field_words, rows, schemas

import floodmark
from floodmark.cli.main import VERBS
from floodmark.cli.main import floodmark as program

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "reference"
_MADE = "This page is made from the code by `scripts/reference.py`."
# A verb → the page that tells how it is used.
GUIDES = {
    "inspect": "format.md",
    "batches": "format.md",
    "offsets": "format.md",
    "files": "format.md",
    "state": "format.md#state",
    "diff": "moving.md",
    "scan": "serving.md",
    "lag": "lag-and-metrics.md",
    "watch": "lag-and-metrics.md",
    "serve": "serving.md",
    "run": "running.md",
    "deploy": "running.md#as-a-service",
    "demo": "tutorial.md",
    "check": "checking.md",
    "outline": "ci.md",
    "compare": "proving.md",
    "replay": "proving.md",
    "drill": "proving.md",
    "doctor": "mending.md",
    "lint": "linting.md",
    "explain": "rules/README.md",
    "migrate": "carrying.md",
    "bootstrap": "carrying.md",
    "repartition": "carrying.md",
    "convert": "carrying.md",
    "compact": "mending.md",
    "repair": "mending.md",
    "leave-dstreams": "leaving-dstreams.md",
}
_CHANGES = set(VERBS["Changing"])


def pages() -> dict[str, str]:
    """File name below docs/reference → its text."""
    documents = schemas()
    return {
        "commands.md": "\n".join(_commands()),
        "api.md": "\n".join(_api()),
        "json.md": "\n".join(_json(documents)),
        **{
            f"schemas/{file_name(name)}": json.dumps(schema, indent=1) + "\n"
            for name, schema in documents.items()
        },
    }


def file_name(document: str) -> str:
    return document.removeprefix("a ").replace(" --", "-").replace(" ", "-").lower() + ".json"


def _commands() -> Iterator[str]:
    yield from ("# Commands", "", _MADE, "")
    yield "`CP` is a checkpoint: its folder, or a URL such as `s3://bucket/folder`. The exit"
    yield "status is 0 done, sound or compatible; 1 the answer is no; 2 wrong use; 3 not a"
    yield "checkpoint, or it cannot be read; 4 refused; 5 stopped midway, with what to do next."
    yield ""
    yield "| verb | what it does |"
    yield "|---|---|"
    for group in VERBS.values():
        for verb, (_, words) in group.items():
            yield f"| [`{verb}`](#{verb}) | {_cell(words)} |"
    yield from ("", "## All of them", "")
    yield from _options(program, click.Context(program, info_name="floodmark"))
    for title, group in VERBS.items():
        yield from ("", f"## {title}")
        for verb in group:
            yield from _verb(verb)


def _verb(verb: str) -> Iterator[str]:
    above = click.Context(program, info_name="floodmark")
    command = program.get_command(above, verb)
    assert command is not None
    context = click.Context(command, info_name=verb, parent=above)
    usage = " ".join(command.get_usage(context).removeprefix("Usage: ").split())
    yield from ("", f"### {verb}", "", "```text", usage, "```", "")
    yield from (_plain(paragraph) for paragraph in _paragraphs(command.help or ""))
    more = []
    if verb in GUIDES:
        more.append(f"[How it is used](../{GUIDES[verb]}).")
    document = "changing-verb" if verb in _CHANGES else verb
    names = {file_name(name).removesuffix(".json") for name in schemas()}
    if document in names:
        more.append(f"[What `--json` gives](json.md#{document}).")
    if more:
        yield from (" ".join(more), "")
    yield from _options(command, context)


def _paragraphs(text: str) -> Iterator[str]:
    for paragraph in re.split(r"\n\s*\n", inspect.cleandoc(text)):
        yield " ".join(paragraph.replace("\b", "").split())
        yield ""


def _options(command: click.Command, context: click.Context) -> Iterator[str]:
    found = [
        record
        for parameter in command.get_params(context)
        if (record := parameter.get_help_record(context)) is not None and record[1]
    ]
    if found:
        yield from ("| option | what it does |", "|---|---|")
        yield from (f"| `{_cell(name)}` | {_plain(_cell(words))} |" for name, words in found)


def _cell(words: str) -> str:
    return " ".join(words.split()).replace("|", "\\|")


def _plain(words: str) -> str:
    """Markdown that shows the words as they are: a star or a placeholder is no markup."""
    return re.sub(r"([*<_])", r"\\\1", words) if "`" not in words else words


def _api() -> Iterator[str]:
    yield from ("# Python", "", _MADE)
    yield "[How they are used](../python.md). Each name is imported from `floodmark` itself, and"
    yield "nothing heavy is loaded before it is used."
    for name in floodmark.__all__:
        found = getattr(floodmark, name)
        yield from ("", f"## {name}", "")
        if inspect.isclass(found):
            yield from _class(found)
        elif inspect.isfunction(found):
            yield from ("```python", _signature(name, found), "```", "")
            yield from _paragraphs(inspect.getdoc(found) or "")
        else:
            yield from _instance(name, found)


def _class(kind: type) -> Iterator[str]:
    words = kind.__doc__ or ""
    if not words.startswith(f"{kind.__name__}("):
        yield from _paragraphs(inspect.cleandoc(words))
    if issubclass(kind, enum.Enum):
        yield from ("| value | what it means |", "|---|---|")
        said = enum_words(kind)
        for one in kind:
            yield f"| `{kind.__name__}.{one.name}` (`{one.value}`) | {_cell(said[one.name])} |"
        return
    yield from ("| attribute or method | what it is |", "|---|---|")
    for name, told in members(kind):
        yield f"| `{name}` | {_cell(_plain(told))} |"


def members(kind: type) -> Iterator[tuple[str, str]]:
    """What a user may ask of a result: its fields in their order, then the rest by name."""
    if dataclasses.is_dataclass(kind):
        said = field_words(kind)
        for field in dataclasses.fields(kind):
            if field.repr and not field.name.startswith("_"):
                yield field.name, said.get(field.name, "")
    for name, member in inspect.getmembers(kind):
        if name.startswith("_"):
            continue
        if isinstance(member, (property, cached_property)):
            yield name, next(_paragraphs(inspect.cleandoc(member.__doc__ or "")), "")
        elif inspect.isfunction(member):
            yield f"{name}()", next(_paragraphs(inspect.getdoc(member) or ""), "")


def _instance(name: str, found: Any) -> Iterator[str]:
    yield from _paragraphs(inspect.getdoc(found) or "")
    for method, member in inspect.getmembers(type(found), inspect.isroutine):
        if not method.startswith("_"):
            yield from ("```python", _signature(f"{name}.{method}", member), "```", "")
            yield from _paragraphs(inspect.getdoc(member) or "")


_WIDTH = 88


def _signature(name: str, function: Any) -> str:
    signature = inspect.signature(function)
    kept = [one for one in signature.parameters.values() if one.name != "self"]
    text = f"{name}{signature.replace(parameters=kept)}".replace("'", "")
    if len(text) <= _WIDTH:
        return text
    lines = [f"{name}("]
    keyword_only = False
    for one in kept:
        if one.kind is one.KEYWORD_ONLY and not keyword_only:
            lines.append("    *,")
            keyword_only = True
        lines.append(f"    {one},".replace("'", ""))
    given = str(signature.return_annotation).replace("'", "")
    return _without_addresses("\n".join([*lines, f") -> {given}"]))


def _without_addresses(signature: str) -> str:
    """A function that is a default is shown by an address, which is another one each time."""
    return re.sub(r"<function .*?>", "…", re.sub(r"<function <lambda> at \w+>", "…", signature))


def _json(documents: dict[str, dict[str, Any]]) -> Iterator[str]:
    yield from ("# What `--json` gives", "", _MADE)
    yield "Each document has a JSON Schema. Fields are added in later releases and keep their"
    yield "names: a reader should pass over those that it does not know."
    yield ""
    yield "Times are milliseconds since 1970 (`…_ms`). `null` is what is not known or does not"
    yield "apply."
    for name, schema in documents.items():
        file = file_name(name)
        title = "The changing verbs" if name.startswith("a ") else f"`{name}`"
        anchor = file.removesuffix(".json")
        yield from ("", f"## {title} {{ #{anchor} }}", "", f"[Schema](schemas/{file})")
        yield from ("", "| field | type | |", "|---|---|---|")
        for path, kind, words in rows(schema):
            yield f"| `{path}` | {kind} | {_plain(_cell(words))} |"


def stale() -> list[str]:
    """The files that are not what the code says, and those that it does not make any more."""
    wanted = pages()
    there = {str(path.relative_to(FOLDER)) for path in FOLDER.rglob("*.*")}
    return sorted(
        name
        for name in there | set(wanted)
        if name not in there or (FOLDER / name).read_text() != wanted.get(name)
    )


def write() -> None:
    wanted = pages()
    for path in FOLDER.rglob("*.*"):
        if str(path.relative_to(FOLDER)) not in wanted:
            path.unlink()
    for name, text in wanted.items():
        (FOLDER / name).parent.mkdir(parents=True, exist_ok=True)
        (FOLDER / name).write_text(text)


def main() -> int:
    if "--check" in sys.argv:
        found = stale()
        if found:
            print(f"docs/reference is not current: {', '.join(found)}. Run scripts/reference.py.")
        return 1 if found else 0
    write()
    print(f"{len(pages())} files in {FOLDER.name}/")
    return 0


if __name__ == "__main__":
    sys.exit(main())
