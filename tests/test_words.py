"""Docstrings and messages are plain sentences: the subject or the verb comes first."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "floodmark"
# fmt: off
NO_BEGINNING = frozenset((
    "Of", "By", "As", "Its", "It", "They", "Them", "Their", "Those", "These", "This", "That",
    "Less", "Nearest", "Nothing", "Nobody", "Not", "No", "So", "Without", "With",
    "From", "In", "On", "To", "Into", "Until", "Whoever", "Whom", "Who", "Where",
    "Which", "Why",
))
# fmt: on
"""Words that begin a fragment, or refer to something that stands elsewhere."""
NO_FUNCTION = NO_BEGINNING | frozenset({"What", "How", "When", "Some", "None"})
"""A function's first word is a verb, or `Whether`; a generator's may be what it gives."""
RIDDLES = (
    "cannot be put together",
    "for want of",
    "has come to its end",
    "lies elsewhere",
    "made anew",
    "nobody but",
    "nothing says where",
    "nothing tells",
    "stopped half way",
    "the doctor's to tell",
    "whatever is there",
    "under another name, or another",
    "without a word",
    "yet to come",
    "what is none",
    "nobody says",
    "came meanwhile",
    "what it says of itself",
    "as the code has it",
    "then ask again",
    "which one is which",
)

Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def modules() -> list[Path]:
    return sorted(SOURCE.rglob("*.py"))


def documented(tree: ast.Module) -> Iterator[tuple[Documented, str]]:
    for node in ast.walk(tree):
        if isinstance(node, Documented):
            text = ast.get_docstring(node)
            if text:
                yield node, text


def is_called(node: Documented) -> bool:
    """Whether callers write parentheses, so that its docstring begins with what it does."""
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return False
    return not any(ast.unparse(one).endswith("property") for one in node.decorator_list)


def bad_beginnings(tree: ast.Module) -> Iterator[str]:
    for node, text in documented(tree):
        first = text.split()[0].rstrip(",:;.")
        if first in (NO_FUNCTION if is_called(node) else NO_BEGINNING):
            name = getattr(node, "name", "the module")
            yield f"line {getattr(node, 'lineno', 1)}, {name}: {text.splitlines()[0]}"


def texts(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Every string, with `{}` for each value that is filled in."""
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = [
                str(one.value) if isinstance(one, ast.Constant) else "{}" for one in node.values
            ]
            yield node.lineno, "".join(parts)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value


def riddles(tree: ast.Module) -> Iterator[str]:
    for line, text in texts(tree):
        plain = " ".join(text.lower().split())
        for riddle in RIDDLES:
            if riddle in plain:
                yield f"line {line}: {riddle!r} in {text!r}"


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(SOURCE)))
def test_docstrings_and_messages_are_plain(path: Path) -> None:
    tree = ast.parse(path.read_text())
    assert list(bad_beginnings(tree)) == []
    assert list(riddles(tree)) == []


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ('"""Of a file, its lines."""', 1),
        ('"""Reads the lines of a file."""', 0),
        ('def f():\n    """What a file has."""', 1),
        ('def f():\n    """Return the lines of a file."""', 0),
        ('class C:\n    """The lines of a file."""', 0),
        ('class C:\n    @property\n    def f(self):\n        """The lines of a file."""', 0),
        ('class C:\n    @cached_property\n    def f(self):\n        """As Spark has it."""', 1),
    ],
)
def test_a_bad_beginning_is_found(code: str, found: int) -> None:
    assert len(list(bad_beginnings(ast.parse(code)))) == found


def test_a_riddle_is_found_across_the_pieces_of_a_text() -> None:
    code = 'f(f"{file}: its write was stopped " "half way")'
    assert len(list(riddles(ast.parse(code)))) >= 1
