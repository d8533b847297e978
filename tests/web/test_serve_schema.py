"""The server answers as its OpenAPI says, whatever it is asked (schemathesis)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import schemathesis
from hypothesis import HealthCheck, given, settings

import samples
from served import serving

BRIEFLY = settings(
    max_examples=12,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)


def test_answers_are_as_described(tmp_path: Path) -> None:
    samples.write(tmp_path / "sales", samples.sales(6))
    with serving(tmp_path) as server:
        [card] = server.examined().values()
        schema: Any = schemathesis.openapi.from_url(f"{server.url}openapi.json")
        tried = 0
        for found in schema.get_all_operations():
            operation = found.ok()

            @BRIEFLY
            @given(case=operation.as_strategy(), known=...)
            def ask(case: Any, known: bool) -> None:
                nonlocal tried
                if known and "id" in (case.path_parameters or {}):
                    case.path_parameters["id"] = card["id"]
                case.call_and_validate()
                tried += 1

            ask()
        assert tried >= 8 * 8
