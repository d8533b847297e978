"""The documents are true: their commands parse, and run where they can."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest

import samples
from floodmark.cli.main import VERBS, floodmark, run

ROOT = Path(__file__).parents[1]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
PREPARED = "data/checkpoints/sales"
# These start Spark, serve until stopped, or change a checkpoint: other tests run them.
NOT_RUN_HERE = {"run", "demo", "serve"}
KNOWN = {verb for group in VERBS.values() for verb in group}


def _commands() -> list[tuple[str, str]]:
    """(where, command line) of every `$ floodmark …` in a console block."""
    found = []
    for document in DOCUMENTS:
        blocks = re.finditer(r"^```console\n(.*?)^```", document.read_text(), re.M | re.S)
        for block in blocks:
            joined = block[1].replace("\\\n", " ")
            for line in joined.splitlines():
                if line.startswith("$ floodmark"):
                    command = line[2:].split(" | ")[0].split(" > ")[0].split("  # ")[0]
                    found.append((str(document.relative_to(ROOT)), command.strip()))
    return found


COMMANDS = _commands()


def test_there_are_commands_to_try() -> None:
    assert COMMANDS


@pytest.mark.parametrize(("document", "command"), COMMANDS, ids=[c for _, c in COMMANDS])
def test_a_documented_command_is_a_valid_one(document: str, command: str) -> None:
    _, *arguments = shlex.split(command)
    context = click.Context(floodmark)
    name, *rest = arguments
    if name in ("--help", "-h", "--version"):
        return
    verb = floodmark.get_command(context, name)
    assert verb is not None, f"{document} shows `floodmark {name}`, which is no verb"
    if "--help" not in rest:
        # Parses the options and arguments, and runs nothing.
        verb.make_context(name, list(rest), parent=context)


@pytest.mark.parametrize(
    ("document", "command"),
    [c for c in COMMANDS if PREPARED in c[1] and shlex.split(c[1])[1] not in NOT_RUN_HERE],
)
def test_a_documented_command_runs(
    document: str,
    command: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    verb, *rest = shlex.split(command)[1:]
    tree = samples.file_stream() if verb == "files" else samples.sales(60)
    samples.write(tmp_path / PREPARED, tree)
    monkeypatch.chdir(tmp_path)
    status = run([verb, *rest])
    assert status in (0, 1), capsys.readouterr().err


def test_every_verb_is_documented() -> None:
    text = "\n".join(document.read_text() for document in DOCUMENTS)
    missing = [verb for verb in KNOWN if not re.search(rf"floodmark {verb}\b|`{verb}`", text)]
    assert missing == []


def test_what_is_recommended_is_a_verb() -> None:
    unknown = []
    for text in (*DOCUMENTS, *(ROOT / "src").rglob("*.py")):
        # A string may go on in the next line of the source.
        joined = re.sub(r'"\s*\n\s*f?"', "", text.read_text())
        named = re.findall(r"`floodmark ([a-z][a-z-]*)", joined)
        unknown += [(text.name, verb) for verb in named if verb not in KNOWN]
    assert unknown == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(document: Path) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)", document.read_text()):
        if "://" not in target and not target.startswith("mailto:"):
            assert (document.parent / target).exists(), f"{target} is not there"
