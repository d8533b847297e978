"""The Python API has every verb and every option of the command line, and shows short results."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest

import floodmark
import samples
from floodmark.cli.main import VERBS
from floodmark.errors import StalePlan, WouldLose, WrongUse

ROOT = Path(__file__).parents[1]
GOLDEN = ROOT / "tests" / "golden" / "4.2" / "sales-hdfs" / "checkpoint"
# `floodmark.state` is a package that can be called; `read_state` is the function.
NAMES = {"state": "read_state", "leave-dstreams": "leave_dstreams"}
SHOWN_ONLY = {"as_json", "form"}
"""How a terminal gets the answer."""
ELSEWHERE = {
    ("apply", "execute"): "resume",
    ("apply", "origin"): "resume",
    ("apply", "resume"): "resume",
    ("backup", "check"): "check_backups",
    ("backup", "listing"): "snapshots",
    ("diff", "with_state"): "diff_state",
    ("explain", "every"): "explain",
    ("inspect", "schema"): "schemas",
    ("migrate", "skeleton"): "skeleton",
    ("run", "bisect"): "bisect",
    ("run", "bisect_sink"): "bisect",
    ("state", "changes"): "state_changes",
}
"""An option that asks another question is a function of its own."""
OF_THE_RESULT = {
    ("offsets", "starting_offsets"): ("floodmark.checkpoint.views.position", "Position"),
    ("state", "key"): ("floodmark.statestore.view", "StateView", "lookup"),
    ("state", "limit"): ("floodmark.statestore.view", "StateView", "rows"),
    ("state", "stats"): ("floodmark.statestore.view", "StateView", "stats"),
    ("state", "export"): ("floodmark.statestore.view", "StateView", "export"),
}
"""What is asked of the result."""
TOGETHER = {("state", "key_schema"): "schema", ("state", "value_schema"): "schema"}


@pytest.fixture(autouse=True)
def not_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fresh files are watched for seconds, to see whether a query writes them."""
    monkeypatch.setattr("floodmark.changes.in_use._movement", lambda *_: None)


def options() -> Iterator[tuple[str, str]]:
    for group in VERBS.values():
        for verb, (module, _) in group.items():
            command: click.Command = importlib.import_module(f"floodmark.cli.{module}").command
            for parameter in command.params:
                if isinstance(parameter, click.Option):
                    yield verb, str(parameter.name)


def keywords(name: str) -> set[str]:
    return set(inspect.signature(getattr(floodmark, name)).parameters)


def test_every_verb_is_a_function_of_the_package() -> None:
    for group in VERBS.values():
        for verb in group:
            assert callable(getattr(floodmark, NAMES.get(verb, verb))), verb
            assert NAMES.get(verb, verb) in floodmark.__all__


def test_every_option_is_a_keyword() -> None:
    missing = []
    for verb, option in options():
        at = (verb, option)
        if option in SHOWN_ONLY:
            continue
        if at in ELSEWHERE:
            assert callable(getattr(floodmark, ELSEWHERE[at]))
        elif at in OF_THE_RESULT:
            module, name, *method = OF_THE_RESULT[at]
            assert hasattr(getattr(importlib.import_module(module), name), (*method, option)[0])
        elif TOGETHER.get(at, option) not in keywords(NAMES.get(verb, verb)):
            missing.append(f"floodmark.{verb}({option}=…)")
    assert missing == []


def test_a_plan_is_applied_once_and_undone(tmp_path: Path) -> None:
    cp = samples.write(tmp_path / "cp", samples.logs(range(5), range(5)))
    change = floodmark.rewind(str(cp), to_batch=2)
    assert not change.executed
    assert floodmark.open(str(cp)).latest_batch == 4
    assert "Carry it out with .apply()" in repr(change)
    done = change.apply()
    assert done.executed
    assert floodmark.open(str(cp)).latest_batch == 2
    assert done.apply() is done
    assert floodmark.undo(str(cp), execute=True).executed
    assert floodmark.open(str(cp)).latest_batch == 4
    stale = floodmark.rewind(str(cp), to_batch=2)
    assert floodmark.rewind(str(cp), to_batch=1).apply().executed
    with pytest.raises(StalePlan):
        stale.apply()


def test_execute_out_and_apply_of_a_saved_plan(tmp_path: Path) -> None:
    cp = samples.write(tmp_path / "cp", samples.logs(range(5), range(5)))
    saved = tmp_path / "plan.json"
    floodmark.rewind(str(cp), to_batch=3, out=str(saved))
    assert floodmark.apply(str(saved)).executed
    assert floodmark.open(str(cp)).batches[-1].batch == 3
    new = tmp_path / "new"
    assert floodmark.upgrade(str(cp), str(new), execute=True).executed
    assert floodmark.copy(str(cp), str(tmp_path / "copy")).apply().executed


@pytest.mark.doubts
def test_what_a_plan_risks_is_accepted_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("floodmark.changes.in_use.no_jvm_here", lambda files: False)
    cp = samples.write(tmp_path / "cp", samples.logs(range(5), range(5)))
    change = floodmark.rewind(str(cp), to_batch=2)
    assert ".apply(accept=['maybe-running'])" in repr(change)
    with pytest.raises(WouldLose):
        change.apply()
    assert change.apply(accept="maybe-running").executed


def test_a_name_alone_is_one_name(tmp_path: Path) -> None:
    cp = samples.write(tmp_path / "cp", samples.logs(range(3), range(3)))
    with pytest.raises(WrongUse, match="nonsense"):
        floodmark.rewind(str(cp), to_batch=1, accept="nonsense")


def results(folder: Path) -> Iterator[Any]:
    kafka = str(samples.write(folder / "kafka", samples.sales(400)))
    files = str(samples.write(folder / "files", samples.file_stream()))
    yield floodmark.open(kafka)
    yield floodmark.open(kafka).batches
    yield floodmark.batches(kafka)
    yield floodmark.batches(kafka, last=1)
    yield floodmark.inspect(kafka)
    yield floodmark.offsets(kafka)
    yield floodmark.files(files)
    yield floodmark.diff(kafka, files)
    yield next(floodmark.scan(str(folder)))
    yield floodmark.doctor(kafka)
    yield floodmark.explain()
    yield floodmark.explain("FM101")
    change = floodmark.rewind(kafka, to_batch=3)
    yield change
    yield change.plan
    yield floodmark.upgrade(files, str(folder / "new"))
    yield floodmark.backup(kafka, str(folder / "repository"), execute=True)
    yield floodmark.snapshots(str(folder / "repository"))
    yield change.apply()
    yield floodmark.undo(kafka)
    code = folder / "app.py"
    code.write_text('df.writeStream.option("checkpointLocatoin", "/tmp/x").start()\n' * 40)
    yield floodmark.lint(str(code))


def test_what_python_shows_fits_a_screen(tmp_path: Path) -> None:
    number = 0
    for result in results(tmp_path):
        lines = repr(result).splitlines()
        assert 0 < len(lines) <= 25, (type(result), len(lines))
        assert max(map(len, lines)) <= 80, (type(result), max(lines, key=len))
        number += 1
    assert number == 20


BLOCKS = re.findall(
    r"^```python\n(.*?)^```", (ROOT / "docs" / "python.md").read_text(), re.M | re.S
)


def test_the_page_about_python_calls_what_is_there() -> None:
    calls = 0
    for node in ast.walk(ast.parse("\n".join(BLOCKS))):
        if isinstance(node, ast.Call) and ast.unparse(node.func).startswith("floodmark."):
            function = getattr(floodmark, ast.unparse(node.func).split(".")[1])
            named = {str(one.arg): None for one in node.keywords}
            inspect.signature(function).bind(*node.args, **named)
            calls += 1
    assert calls >= 10


@pytest.mark.parametrize("first", ["", "import floodmark.state.rows.types"])
def test_state_is_a_function_and_a_package(first: str) -> None:
    count = f"len(floodmark.state({str(GOLDEN)!r}, operator=0).rows(2))"
    code = f"{first}\nimport floodmark\nprint({count})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == "2\n", done.stderr


def test_the_page_about_python_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of it that needs no Spark: what reads on a checkpoint that Spark has written."""
    place = tmp_path / "data" / "checkpoints" / "sales"
    shutil.copytree(GOLDEN, place)
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    key = floodmark.read_state(str(place)).rows(1)[0]["key"]
    exec(BLOCKS[0] + BLOCKS[1].replace('{"customerId": "c42"}', repr(key)), names)
    assert (tmp_path / "state.parquet").is_file()
    assert list(names["frame"].columns) == ["partition", "customerId", "sum", "count"]
    shutil.rmtree(place)
    samples.write(place, samples.sales(26))
    exec(BLOCKS[2], names)
    assert floodmark.open(str(place)).latest_batch == 22
