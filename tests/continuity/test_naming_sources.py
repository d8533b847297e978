"""Sources that `convert --name` has named: Spark goes on with them in any order."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from named_sources import SCENARIOS, NamedScenario, run_named
from test_continuity import HERE, ROOT, SPARKS

from other_spark import packages

QUICK = [one for one in SCENARIOS if one.quick]


@pytest.mark.spark
@pytest.mark.parametrize("one", QUICK, ids=lambda one: one.name)
def test_named_sources_go_on(spark: Any, one: NamedScenario, tmp_path: Path) -> None:
    """Spark 4.2 has the log and the names as well; 4.3, whose feature it is, is below."""
    assert run_named(spark.newSession(), one, tmp_path / "run") == []


@pytest.mark.soak
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("version", ["4.2.0", "4.3.0"])
def test_every_naming(version: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    python = sys.executable if version == "4.2.0" else str(SPARKS / version / "bin" / "python")
    if not Path(python).exists():
        pytest.skip(f"Spark {version} is not here")
    paths = [ROOT / "src", *([packages(tmp_path / "packages")] if version != "4.2.0" else [])]
    done = subprocess.run(
        [python, str(HERE / "named_sources.py"), str(tmp_path)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths))},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    outcomes = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    wrong = {one["name"]: one["wrong"] for one in outcomes if one["wrong"]}
    with capsys.disabled():
        print(f"\nSpark {version}: {len(outcomes)} streams with named sources, {len(wrong)} wrong")
    assert wrong == {}
    assert len(outcomes) == len(SCENARIOS)
