"""Whoever is refused by a verb that carries state over is told what to do instead."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "floodmark"
ERRORS = {"NoAnswer", "NotCarried", "StoppedMidway", "WouldLose", "WrongUse"}
ROOMS = (
    "changes/matching",
    "changes/plan",
    "changes/planners",
    "api",
    "engine/state",
    "state/shapes",
    "statestore/rewrite",
)
MODULES = [
    *(path for room in ROOMS for path in sorted((SOURCE / room).glob("*.py"))),
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
