"""Text of a stranger, made safe to show."""

from __future__ import annotations

import ast
import json
import unicodedata
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import floodmark
from floodmark.errors import WrongUse
from floodmark.visible import json_visible, one_line, visible

STEERING = ("Cc", "Cf", "Zl", "Zp", "Cs")


def steering(text: str) -> set[str]:
    """The characters that do something to a terminal instead of showing; line feeds apart."""
    return {one for one in text if unicodedata.category(one) in STEERING and one != "\n"}


def test_every_steering_character_of_unicode_is_shown_by_its_number() -> None:
    every = "".join(map(chr, range(0x110000)))
    assert steering(visible(every)) == set()
    assert "\n" in visible(every)
    assert "\n" not in one_line(every)


def test_numbers() -> None:
    assert visible("\x1b[2J\u202e\U000e0001\x9b") == "\\x1b[2J\\u202e\\U000e0001\\x9b"
    assert one_line("a\nb\tc") == "a\\nb\\x09c"


@given(st.text(st.characters(exclude_categories=STEERING)))
def test_other_text_is_as_it_was(text: str) -> None:
    text = "".join(one for one in text if visible(one) == one)
    assert visible(text) == one_line(text) == text
    assert visible("ÄÖ→–日本語") == "ÄÖ→–日本語"


@given(st.dictionaries(st.text(), st.text()), st.sampled_from([None, 2]))
@example({"\x7f": ""}, None)
def test_json_stays_the_same_data(value: dict[str, str], indent: int | None) -> None:
    shown = json_visible(json.dumps(value, ensure_ascii=False, indent=indent))
    assert steering(shown) == set()
    assert json.loads(shown) == value


def test_an_error_is_safe_in_any_log() -> None:
    error = WrongUse("a\x1b[2Jb", "\u202e", "\x07")
    assert steering(str(error)) == set()


def _prints(tree: ast.Module) -> list[int]:
    """The lines of a module that print."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            if name in (
                "print",
                "click.echo",
                "click.secho",
                "sys.stdout.write",
                "sys.stderr.write",
            ):
                found.append(node.lineno)
    return found


def test_all_that_is_printed_goes_through_one_door() -> None:
    """`echo` escapes. A verb that prints otherwise would forget to."""
    root = Path(floodmark.__file__).parent
    doors = {
        "cli/text/__init__.py": 2,  # echo, and say
        "cli/completion.py": 1,  # a shell's script, of click's own words
        "cli/waiting.py": 1,  # what a verb waits for, in its own words
        "api/running.py": 1,  # the steps of a pipeline's run, escaped there
        "engine/run/live_table.py": 1,  # the lines of a run, escaped there
        "engine/start/launch.py": 1,  # start()'s warnings, escaped there
        "engine/app/scripts.py": 1,  # what a script's judging left open, escaped there
        "engine/app/script_run.py": 2,  # sys.exit's words and left-out acts, escaped there
        "engine/drill/doors/outside.py": 2,  # JSON between a drill's process and its helper
        "engine/spark/cluster.py": 1,  # that a cluster gives no executor, escaped there
        "engine/demo/oracle.py": 1,  # a child process that prints JSON for its parent
    }
    found = {
        str(path.relative_to(root)): len(lines)
        for path in sorted(root.rglob("*.py"))
        if (lines := _prints(ast.parse(path.read_text())))
    }
    assert found == doors


@pytest.mark.parametrize("mark", ["\x1b[31m", "\U000f1234\U000f1234[31m"])
def test_nobody_but_floodmark_makes_colours(mark: str) -> None:
    from floodmark.cli import text as words

    assert "\x1b" not in words.shown(f"{mark}ALL SOUND")
