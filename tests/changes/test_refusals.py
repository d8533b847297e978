"""Whoever is refused by a verb that carries state over is told what to do instead."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "floodmark"
ERRORS = {"NoAnswer", "NotCarried", "StoppedMidway", "WouldLose", "WrongUse"}
MODULES = [
    *(SOURCE / "changes").glob("re[pw]*.py"),
    *(SOURCE / "changes").glob("m[ai]*.py"),
    *(SOURCE / "storage").glob("state_re*.py"),
    *(SOURCE / "engine").glob("m[aei]*.py"),
    SOURCE / "changes" / "aggregate_columns.py",
    SOURCE / "changes" / "bootstrap.py",
    SOURCE / "changes" / "compact.py",
    SOURCE / "changes" / "convert.py",
    SOURCE / "changes" / "fields.py",
    SOURCE / "engine" / "bootstrapping.py",
    SOURCE / "state" / "merging.py",
    SOURCE / "state" / "reshape.py",
    SOURCE / "api" / "migrating.py",
]


@pytest.mark.parametrize("module", MODULES, ids=lambda path: path.stem)
def test_every_refusal_says_what_to_do(module: Path) -> None:
    silent = [
        f"{module.name}:{call.lineno}"
        for call in ast.walk(ast.parse(module.read_text()))
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Name)
        and call.func.id in ERRORS
        and len(call.args) < 3
        and not any(word.arg == "do" for word in call.keywords)
    ]
    assert silent == []


def test_modules_are_there() -> None:
    names = {path.stem for path in MODULES}
    assert {"repartition", "rewritten", "matching", "migrate", "migration", "made_rows"} <= names
