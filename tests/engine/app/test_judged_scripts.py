"""What surrounds a script's query: its modules, and the settings at each of its starts."""

from __future__ import annotations

import json
import os
import py_compile
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import floodmark
from floodmark.cli import main as cli

pytestmark = pytest.mark.spark

TWO = """
import sys
from pyspark.sql import SparkSession, functions as F
PLACE = sys.argv[1]
spark = SparkSession.builder.getOrCreate()
rows = spark.readStream.schema("k string, v long").json(f"{PLACE}/in")
for name, partitions, zone in (("one", 3, "Asia/Tokyo"), ("two", 2, "UTC")):
    spark.conf.set("spark.sql.shuffle.partitions", partitions)
    spark.conf.set("spark.sql.session.timeZone", zone)
    out = rows.groupBy("k").agg(F.sum("v").alias("total"))
    query = (out.writeStream.outputMode("complete").format("memory").queryName(name)
        .option("checkpointLocation", f"{PLACE}/{name}").trigger(availableNow=True).start())
    query.awaitTermination()
"""
SINK_IN_A_MODULE = """
import os, sys
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from sinks_beside import keep
from pyspark.sql import SparkSession
PLACE = sys.argv[1]
spark = SparkSession.builder.getOrCreate()
rows = spark.readStream.schema("k string, v long").json(f"{PLACE}/in")
query = (rows.groupBy("k").count().writeStream.outputMode("update").foreachBatch(keep)
    .option("checkpointLocation", f"{PLACE}/one").trigger(availableNow=True).start())
query.awaitTermination()
"""


OF_A_REPOSITORY = """
import sys
from repo_steps.prepare import prepared
from pyspark.sql import SparkSession
PLACE = sys.argv[1]
spark = SparkSession.builder.getOrCreate()
rows = prepared(spark.readStream.schema("k string, v long").json(f"{PLACE}/in"))
query = (rows.groupBy("k").count().writeStream.outputMode("update").format("noop")
    .option("checkpointLocation", f"{PLACE}/one").trigger(availableNow=True).start())
query.awaitTermination()
"""
CATCHES_UP = """
import sys
from pyspark.sql import SparkSession, functions as F
PLACE = sys.argv[1]
spark = SparkSession.builder.getOrCreate()
rows = spark.readStream.schema("k string, v long").json(f"{PLACE}/in").groupBy("k").count()
writer = rows.writeStream.outputMode("update").format("noop")
writer = writer.option("checkpointLocation", f"{PLACE}/one")
writer.trigger(availableNow=True).start().awaitTermination()
live = writer.trigger(processingTime="1 second").start()
live.stop()
"""


def _write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def _run(script: Path, place: Path, monkeypatch: pytest.MonkeyPatch, *given: str) -> None:
    """Run a script that nobody watches, as `python script.py` does."""
    _write(place / "in" / "1.json", json.dumps({"k": "a", "v": 1}))
    with monkeypatch.context() as patch:
        patch.setattr(sys, "argv", [str(script), str(place), *given])
        patch.setattr(sys, "path", [str(script.parent), *sys.path])
        runpy.run_path(str(script), run_name="__main__")
    for name in ("sinks_beside", "repo_steps", "repo_steps.prepare"):
        sys.modules.pop(name, None)


@pytest.fixture
def kept_settings(spark: Any) -> Any:
    names = ("spark.sql.shuffle.partitions", "spark.sql.session.timeZone")
    before = {name: spark.conf.get(name) for name in names}
    yield
    for name, value in before.items():
        spark.conf.set(name, value)


@pytest.mark.usefixtures("kept_settings")
@pytest.mark.parametrize("name", ["one", "two"])
def test_a_query_is_judged_with_the_settings_at_its_start(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    script = _write(tmp_path / "app.py", TWO)
    _run(script, tmp_path, monkeypatch)
    place, other = str(tmp_path / name), _write(tmp_path / "new.py", TWO.replace("Tokyo", "Seoul"))
    found = floodmark.check(place, str(script), old=str(script), arguments=[str(tmp_path)])
    assert (found.verdict.value, found.reasons) == ("same", ())
    found = floodmark.check(place, str(other), old=str(script), arguments=[str(tmp_path)])
    said = [one.rule for one in found.reasons]
    assert said == (["evaluation-settings-changed"] if name == "one" else [])


def test_another_sink_function_in_a_module_is_told(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = (_write(tmp_path / one / "jobs" / "app.py", SINK_IN_A_MODULE) for one in "ab")
    for one in (old, new):
        _write(one.parent.parent / "sinks_beside.py", "def keep(rows, number):\n    rows.count()\n")
    _run(old, tmp_path, monkeypatch)
    place, arguments = os.fspath(tmp_path / "one"), [str(tmp_path)]
    found = floodmark.check(place, str(new), old=str(old), arguments=arguments)
    assert (found.verdict.value, found.reasons) == ("same", ())
    _write(new.parent.parent / "sinks_beside.py", "def keep(rows, number):\n    pass\n")
    found = floodmark.check(place, str(new), old=str(old), arguments=arguments)
    assert [one.rule for one in found.reasons] == ["code-changed"]
    assert "or a module that it imports" in found.reasons[0].what


def test_a_script_that_catches_up_first_is_judged(
    spark: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    script = _write(tmp_path / "app.py", CATCHES_UP)
    _run(script, tmp_path, monkeypatch)
    place, arguments = str(tmp_path / "one"), [str(tmp_path)]
    found = floodmark.check(place, str(script), old=str(script), arguments=arguments)
    assert found.verdict.value == "same"
    told = "line 10: starts again on this checkpoint, which is judged with line 9; for this start"
    assert f"{told}: --query 2" in capsys.readouterr().err
    live = floodmark.check(place, str(script), arguments=arguments, query=2, old=str(script))
    assert live.verdict.value == "same"
    assert "starts again" not in capsys.readouterr().err


def _git(folder: Path, *arguments: str) -> None:
    named = ["-c", "user.name=a", "-c", "user.email=a@example.com"]
    subprocess.run(["git", "-C", str(folder), *named, *arguments], check=True, capture_output=True)


def test_old_code_of_a_revision_has_the_modules_of_that_revision(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also those that lie beside the script's folder, and are found by PYTHONPATH."""
    root = tmp_path / "repo"
    script = _write(root / "jobs" / "app.py", OF_A_REPOSITORY)
    module = _write(
        root / "lib" / "repo_steps" / "prepare.py", "def prepared(rows):\n    return rows\n"
    )
    (root / "elsewhere").symlink_to("/etc")
    for arguments in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "first"]):
        _git(root, *arguments)
    monkeypatch.syspath_prepend(str(root / "lib"))
    _run(script, tmp_path, monkeypatch)
    place, given = str(tmp_path / "one"), [str(tmp_path)]
    found = floodmark.check(place, str(script), old_ref="HEAD", arguments=given)
    assert (found.verdict.value, found.reasons) == ("same", ())

    module.write_text("def prepared(rows):\n    return rows.where('v > 1')\n")
    found = floodmark.check(place, str(script), old_ref="HEAD", arguments=given)
    assert [one.rule for one in found.reasons] == ["filter-changed"]

    _git(root, "rm", "-q", "--cached", "lib/repo_steps/prepare.py")
    _git(root, "commit", "-q", "-m", "without")
    with pytest.raises(floodmark.FloodmarkError, match=r"imports repo_steps\S* from the working"):
        floodmark.check(place, str(script), old_ref="HEAD", arguments=given)


def test_a_module_that_was_edited_within_one_second_is_not_judged_by_its_old_bytecode(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = (_write(tmp_path / one / "jobs" / "app.py", OF_A_REPOSITORY) for one in "ab")
    filtered = "def prepared(rows):\n    return rows.where('v > 1')\n"
    for script in (old, new):
        _write(script.parent / "repo_steps" / "prepare.py", filtered)
    _run(old, tmp_path, monkeypatch)
    module = new.parent / "repo_steps" / "prepare.py"
    py_compile.compile(str(module), doraise=True)
    at = module.stat().st_mtime
    module.write_text(filtered.replace("1", "2"))
    os.utime(module, (at, int(at) + 0.999))
    place, arguments = str(tmp_path / "one"), [str(tmp_path)]
    found = floodmark.check(place, str(new), old=str(old), arguments=arguments)
    assert [one.rule for one in found.reasons] == ["filter-changed"]


def test_printed_commands_tell_that_a_script_has_arguments(
    spark: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    script = _write(tmp_path / "app.py", CATCHES_UP)
    _run(script, tmp_path, monkeypatch)
    script.write_text(CATCHES_UP.replace('"k").count()', '"k").agg(F.sum("v"), F.max("v"))'))
    assert cli.run(["run", str(script), "--", str(tmp_path)]) == 4
    commands = [line for line in capsys.readouterr().err.splitlines() if "migrate" in line]
    assert commands[0].strip().startswith("floodmark migrate"), commands
    assert commands[0].endswith("-- ARGUMENTS"), commands
    place = str(tmp_path / "one")
    change = floodmark.upgrade(place, f"{place}-2", app=str(script), arguments=[str(tmp_path)])
    assert f"`floodmark check {place}-2 {script} -- ARGUMENTS`" in " ".join(change.plan.notes)


IN_MEMORY = """
import sys
from pyspark.sql import SparkSession
PLACE, SINK, MODE = sys.argv[1:]
spark = SparkSession.builder.getOrCreate()
rows = spark.readStream.schema("k string, v long").json(f"{PLACE}/in")
rows = rows.groupBy("k").count() if MODE == "complete" else rows
query = (rows.writeStream.outputMode(MODE).format(SINK).queryName("seen")
    .option("checkpointLocation", f"{PLACE}/{SINK}-{MODE}").trigger(availableNow=True).start())
query.awaitTermination()
"""


@pytest.mark.parametrize("sink", ["memory", "console"])
@pytest.mark.parametrize("mode", ["append", "update", "complete"])
def test_a_sink_that_cannot_go_on_is_told_before_spark_refuses_it(
    spark: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    sink: str,
    mode: str,
) -> None:
    script = _write(tmp_path / "app.py", IN_MEMORY)
    given = (sink, mode)
    _run(script, tmp_path, monkeypatch, *given)
    place, arguments = str(tmp_path / "-".join(given)), [str(tmp_path), *given]
    found = floodmark.check(place, str(script), old=str(script), arguments=arguments)
    command = ["run", str(script), "--", *arguments]
    refused = ""
    try:
        _run(script, tmp_path, monkeypatch, *given)
    except Exception as error:
        refused = str(error)
    assert bool(refused) is (sink == "memory" and mode != "complete")
    if not refused:
        assert (found.verdict.value, found.reasons) == ("same", ())
        assert cli.run(command) == 0
        return
    assert "does not support recovering from checkpoint location" in refused
    assert found.verdict.value == "needs-new-checkpoint"
    assert [one.rule for one in found.reasons] == ["memory-sink-resumed"]
    assert cli.run(command) == 4
    said = f"A memory sink in {mode} mode cannot go on from a checkpoint"
    assert capsys.readouterr().err.count(said) == 1
    for change in (floodmark.upgrade, floodmark.migrate):
        with pytest.raises(floodmark.FloodmarkError, match=said):
            change(place, f"{place}-new", app=str(script), arguments=arguments)
