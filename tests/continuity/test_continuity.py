"""The continuity matrix: changed code goes on with the state of the code before it.

`make test` runs a selection; `make soak` runs every scenario, on every Spark that is there, and
prints how many were carried, and how many Spark would have resumed by itself.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from continuity_matrix import Outcome, run_scenario, summary
from scenarios import ALL_SPARKS, Scenario, scenarios

from other_spark import packages

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
SPARKS = ROOT / ".cache" / "sparks"


def _selection() -> list[Scenario]:
    """The quick ones, each with one provider; which one turns."""
    found: dict[tuple[str, str], list[Scenario]] = {}
    for one in scenarios():
        if one.quick:
            found.setdefault((one.operator, one.change), []).append(one)
    return [both[turn % len(both)] for turn, both in enumerate(found.values())]


QUICK = _selection()


def test_there_are_enough_scenarios() -> None:
    every = list(scenarios())
    assert len(every) >= 60
    assert len({one.name for one in every}) == len(every)


@pytest.mark.spark
@pytest.mark.parametrize("one", QUICK, ids=[one.name for one in QUICK])
def test_the_new_code_goes_on_with_the_old_state(spark: Any, one: Scenario, tmp_path: Path) -> None:
    outcome = run_scenario(spark.newSession(), one, tmp_path / "run")
    assert outcome.carried, outcome.why
    assert outcome.verdict != "needs-new-checkpoint"  # what migrate carries, check does not drop


@pytest.mark.soak
@pytest.mark.parametrize(
    ("version", "ways"),
    [*((version, ()) for version in ("4.2.0", *ALL_SPARKS)), ("4.2.0", ("--scripts",))],
    ids=["4.2.0", *ALL_SPARKS, "a third from plain scripts"],
)
def test_every_scenario(
    version: str, ways: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    python = sys.executable if version == "4.2.0" else str(SPARKS / version / "bin" / "python")
    if not Path(python).exists():
        pytest.skip(f"Spark {version} is not here")
    place = tmp_path / "packages"
    paths = [str(ROOT / "src"), *([str(packages(place))] if version != "4.2.0" else [])]
    done = subprocess.run(
        [python, str(HERE / "continuity_matrix.py"), str(tmp_path), *ways],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    outcomes = []
    for line in done.stdout.splitlines():
        if not line.startswith("{"):  # a JVM has its warnings there
            continue
        found = json.loads(line)
        found.pop("spark")
        outcomes.append(Outcome(**found))
    with capsys.disabled():
        print(f"\nSpark {version}: {summary(outcomes)}")
    known = {one.name for one in scenarios()}
    assert outcomes
    assert {one.name for one in outcomes} <= known
    # Its status is of all outcomes: none was lost on the way here.
    assert (done.returncode == 0) == all(one.carried for one in outcomes)
    assert version != "4.2.0" or ways or len(outcomes) == len(known)
    assert [(one.name, one.why) for one in outcomes if not one.carried] == []
    assert [one.name for one in outcomes if one.verdict == "needs-new-checkpoint"] == []
