"""Commands run in this process: what they print, and how they end."""

from __future__ import annotations

import json
from typing import Any

import pytest

from floodmark.cli.main import run

Capture = pytest.CaptureFixture[str]


def given(capsys: Capture, *arguments: object) -> tuple[int, Any, str]:
    """The exit status, what was printed (with --json as data), what went to stderr."""
    capsys.readouterr()
    status = run([str(one) for one in arguments])
    said = capsys.readouterr()
    is_json = "--json" in arguments and said.out
    return status, json.loads(said.out) if is_json else said.out, said.err
