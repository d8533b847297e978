"""The session that a verb uses, and what is left of its log."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from floodmark.engine.spark.session import passing_log


def test_a_log_stays_only_where_it_tells_of_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with passing_log("check") as log:
        log.write_text("Spark says something\n")
    assert not log.exists()
    for said in ("", "Spark says why\n"):
        with pytest.raises(ValueError, match="no"):
            _fail(said)
        assert [log.read_text() for log in tmp_path.iterdir()] == [said] * bool(said)


def _fail(said: str) -> None:
    with passing_log("check") as log:
        log.write_text(said)
        raise ValueError("no")
