"""Loading an application's file: every way it can be wrong has its own sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from floodmark.engine.pipelines.application import load_application
from floodmark.errors import WrongUse

GOOD = """
from floodmark.engine.pipelines.decorator import pipeline

@pipeline(checkpoint="ck/a")
def first(spark, start): ...

@pipeline(checkpoint="ck/b")
def second(spark, start): ...
"""


def write(folder: Path, text: str, name: str = "app.py") -> str:
    path = folder / name
    path.write_text(text)
    return str(path)


def test_all_pipelines_of_a_file_or_the_one_that_is_named(tmp_path: Path) -> None:
    path = write(tmp_path, GOOD)
    assert [one.name for one in load_application(path).pipelines] == ["first", "second"]
    assert [one.name for one in load_application(f"{path}:second").pipelines] == ["second"]


def test_the_fingerprint_tells_changed_code(tmp_path: Path) -> None:
    before = load_application(write(tmp_path, GOOD)).fingerprint
    assert load_application(write(tmp_path, GOOD)).fingerprint == before
    assert load_application(write(tmp_path, GOOD + "\n# changed\n")).fingerprint != before


def test_an_application_imports_what_lies_beside_it(tmp_path: Path) -> None:
    write(tmp_path, "CHECKPOINT = 'ck/beside'", "floodmark_test_neighbour.py")
    text = GOOD.replace('"ck/a"', "floodmark_test_neighbour.CHECKPOINT")
    path = write(tmp_path, "import floodmark_test_neighbour\n" + text)
    assert load_application(path).pipelines[0].checkpoint == "ck/beside"


def test_a_pipeline_under_two_names_is_one(tmp_path: Path) -> None:
    path = write(tmp_path, GOOD + "\nalias = first\n")
    assert len(load_application(path).pipelines) == 2


@pytest.mark.parametrize(
    ("text", "what", "more"),
    [
        ("x = 1\n", "has no pipeline", "@pipeline"),
        ("import json\n\nraise ValueError('no region')\n", "ValueError: no region", "line 3"),
        ("def broken(:\n", "SyntaxError", "line 1"),
        ("import no_such_module_at_all\n", "ModuleNotFoundError", "pip install no_such_module"),
        ("import pyspark.no_such_part\n", "ModuleNotFoundError", "floodmark[spark]"),
        ("import sys\nsys.exit(3)\n", "SystemExit: 3", "line 2"),
        (
            GOOD.replace('checkpoint="ck/b"', 'checkpoint="ck/b", name="first"'),
            "two pipelines are named 'first'",
            "name=",
        ),
    ],
)
def test_what_is_wrong_with_a_file_is_said(tmp_path: Path, text: str, what: str, more: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(WrongUse) as error:
        load_application(path)
    assert what in error.value.what
    assert more in f"{error.value.why} {error.value.do}"


def test_the_users_own_line_is_named_for_a_relative_path_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, "import json\n\njson.loads('no JSON')\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(WrongUse) as error:
        load_application("app.py")
    assert error.value.why == f"{tmp_path / 'app.py'}, line 3: json.loads('no JSON')"


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(WrongUse, match="no such application file"):
        load_application(str(tmp_path / "none.py"))


def test_a_pipeline_that_is_not_in_the_file(tmp_path: Path) -> None:
    with pytest.raises(WrongUse) as error:
        load_application(write(tmp_path, GOOD) + ":third")
    assert "first, second" in error.value.why
