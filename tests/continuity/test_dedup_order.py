"""Columns of dropDuplicates in the order of another Spark: Spark goes wrong without a word."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from dedup_order import APP, run, wanted, write_input
from test_continuity import HERE

from floodmark import api
from floodmark.changes.apply import Carrying
from other_spark import environment, python_of


@pytest.mark.soak
@pytest.mark.spark
@pytest.mark.timeout(900)
@pytest.mark.parametrize("version", ["3.5.9", "4.3.0"])
def test_six_columns_go_on_in_4_2(
    version: str, spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = environment(tmp_path / "packages")
    inherited = {k: v for k, v in both.items() if not k.startswith(("PYSPARK", "SPARK"))}
    begun = [str(python_of(version)), str(HERE / "dedup_order.py"), "first", str(tmp_path)]
    subprocess.run(begun, env=inherited, check=True)
    write_input(tmp_path / "in", 1)
    right = wanted(spark, tmp_path / "in")
    # Spark by itself: it starts, and takes all that was seen for new.
    for name in ("old", "out"):
        shutil.copytree(tmp_path / name, tmp_path / "alone" / name)
    alone = run(spark.newSession(), tmp_path / "in", tmp_path / "alone/old", tmp_path / "alone/out")
    assert len(alone) > len(right)
    # check says so, and migrate puts the keys into this Spark's order.
    monkeypatch.syspath_prepend(str(HERE))
    app, new = tmp_path / "app.py", tmp_path / "new"
    parts = {"source": str(tmp_path / "in"), "out": str(tmp_path / "out")}
    app.write_text(APP.format(checkpoint=str(new), **parts))
    found = api.check(str(tmp_path / "old"), str(app))
    reasons = {one.rule: one for one in found.reasons}
    assert not found.verdict.is_yes
    assert reasons["dedup-columns-changed"].silent
    # Spark 4 has ANSI mode on by default, which changes nothing here.
    accept = ["last-start-unknown", *(["evaluation-settings-changed"] if version < "4" else [])]
    api.migrate(
        str(tmp_path / "old"), str(new), app=str(app), accept=accept, carrying=Carrying(True, 0)
    )
    assert run(spark.newSession(), tmp_path / "in", new, tmp_path / "out") == right
