"""Drills of pipelines whose fate is known: the faults are found where they are, sound ones pass.

One pair runs with every `make test`, at one point; all twelve at all points are `make soak`.
"""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from drill.drilled import FAULTY, ROWS, SOUND, Drilled, sample
from floodmark import api

pytestmark = pytest.mark.timeout(1800)


def drilled(base: Path, one: Drilled, *points: str) -> api.drilling.Drill:
    app = one.write(base)
    before = sorted(base.rglob("*"))
    found = api.drill(
        str(app), input=str(sample(base)), point=points, scratch=str(base / "scratch")
    )
    after = sorted(base.rglob("*"))
    assert after == sorted([*before, base / "sample.jsonl"]), "nothing of the user's was touched"
    assert found.rows == ROWS
    return found


def require_caught(found: api.drilling.Drill, one: Drilled) -> None:
    failed = {result.point: result for result in found.points if result.survived is False}
    for point, what in one.fails:
        assert point in failed, found.points
        assert getattr(failed[point], what) > 0, failed[point]
    assert not found.survived
    assert any(one.advice in words for words in found.advice), found.advice


@pytest.mark.spark
def test_an_append_repeats_a_batch(tmp_path: Path) -> None:
    one = FAULTY["append in foreachBatch"]
    found = drilled(tmp_path / "faulty", one, "after-sink")
    require_caught(found, one)
    (result,) = found.points
    assert (result.repeated, result.lost, result.wrong, result.batch) == (3, 0, 0, 1)
    (sink,) = result.sinks.values()
    assert [row["id"] for row in sink.repeated_rows] == [3, 4, 5]


@pytest.mark.spark
def test_once_delta_survives(tmp_path: Path) -> None:
    found = drilled(tmp_path / "sound", SOUND["once.delta"], "after-sink")
    assert found.survived
    assert [(one.point, one.survived) for one in found.points] == [("after-sink", True)]


@pytest.mark.soak
@pytest.mark.parametrize("name", FAULTY)
def test_every_fault_is_caught_where_it_is(name: str, tmp_path: Path) -> None:
    began = time.monotonic()
    found = drilled(tmp_path / "app", FAULTY[name])
    print(f"\n{name}: {_words(found)}; {time.monotonic() - began:.0f} s", flush=True)
    require_caught(found, FAULTY[name])


@pytest.mark.soak
@pytest.mark.parametrize("name", SOUND)
def test_every_sound_pipeline_survives(name: str, tmp_path: Path) -> None:
    began = time.monotonic()
    found = drilled(tmp_path / "app", SOUND[name])
    print(f"\n{name}: {_words(found)}; {time.monotonic() - began:.0f} s", flush=True)
    assert found.survived, found.points
    assert sum(one.survived is True for one in found.points) >= 4, found.points


def _words(found: api.drilling.Drill) -> str:
    told = {True: "survived", None: "not hit"}
    return ", ".join(
        f"{one.point} "
        + told.get(one.survived, f"lost {one.lost} repeated {one.repeated} wrong {one.wrong}")
        for one in found.points
    )
