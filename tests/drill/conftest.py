"""What tests of drills share: an application that would be drilled."""

from __future__ import annotations

from pathlib import Path

import pytest

APP = """
from floodmark import pipeline

@pipeline(checkpoint="ck")
def one(spark, start):
    return None
"""


@pytest.fixture
def app(tmp_path: Path) -> Path:
    path = tmp_path / "app.py"
    path.write_text(APP)
    return path
