"""How far a driver is when it is killed, by the marks of its functions: no Spark."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from floodmark.drills.points import Point
from floodmark.engine.drill.killing.aftermath import judge
from floodmark.engine.drill.killing.marks import HOLD, FunctionLog, Hold, Marks


def test_marks_tell_how_far_a_function_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    monkeypatch.setattr(time, "sleep", waits.append)
    monkeypatch.setenv(HOLD, Hold(Point.DURING_SINK, 1, 2).text())
    for name in ("offsets/0", "offsets/1", "commits/0"):
        (tmp_path / "ck" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "ck" / name).touch()
    (tmp_path / "ck" / "metadata").write_text('{"id": "q"}')
    marks, log = Marks(tmp_path), FunctionLog(tmp_path)
    assert judge(tmp_path / "ck", log, 3, 0.0).point is Point.AFTER_OFFSET
    marks.begin(1)
    marks.wrote()
    assert not waits
    assert judge(tmp_path / "ck", log, 3, 0.0).point is Point.DURING_SINK
    marks.wrote()
    assert len(waits) == 1, "held after the second write of batch 1"
    marks.done(1)
    assert judge(tmp_path / "ck", log, 3, 0.0).point is Point.AFTER_SINK
    assert log.told(1)[0] == 2
