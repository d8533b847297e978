"""Scripts that cannot be judged: each gets its own sentence, and nothing is started or written."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Any

import pytest

from floodmark.engine.app.options import ScriptOptions
from floodmark.engine.pipelines.building import built
from floodmark.errors import WrongUse

pytestmark = pytest.mark.spark

SESSION = """
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
rows = spark.readStream.format("rate").load()
"""


def start(place: str, more: str = "") -> str:
    return (
        f'rows.writeStream.format("noop"){more}.option("checkpointLocation", "{place}").start()\n'
    )


TROUBLES = {
    "never starts": (
        SESSION + "writer = rows.writeStream.format('noop')\n",
        ["ends without starting a streaming query", "script.py -- ARGUMENT"],
    ),
    "two with one checkpoint": (
        SESSION + start("ck") + start("ck"),
        ["starts 2 queries with one checkpoint: ck", "1, line 5: ck", "2, line 6: ck"],
    ),
    "several, none with this checkpoint": (
        SESSION + start("a", '.queryName("first")') + start("b"),
        ["starts 2 queries", "1 first, line 5: a", "2, line 6: b", "--query first"],
    ),
    "exits": (
        SESSION + "import sys\nsys.exit(3)\n",
        ["ends before it starts a query", "line 6", "exit status 3"],
    ),
    "exits with words": (
        "import sys\nsys.exit('no region')\n",
        ["ends before it starts a query", "no region"],
    ),
    "hides what failed": (
        "import sys\ntry:\n    1 / 0\nexcept Exception:\n    sys.exit(1)\n",
        ["ends before it starts a query", "ZeroDivisionError: division by zero"],
    ),
    "kills its process": (
        "import os\nos._exit(7)\n",
        ["ends before it starts a query", "os._exit() with exit status 7"],
    ),
    "waits for input": (
        "day = input('day? ')\n",
        ["waits for input before it starts a query", "line 1"],
    ),
    "reads its input": (
        "import sys\nfor line in sys.stdin:\n    pass\n",
        ["waits for input before it starts a query", "line 2"],
    ),
    "needs arguments": (
        "import argparse\np = argparse.ArgumentParser()\np.add_argument('--day', required=True)\n"
        "p.parse_args()\n",
        ["ends before it starts a query", "If it needs arguments,", "script.py -- ARGUMENT"],
    ),
    "takes an argument": (
        "import sys\nday = sys.argv[1]\n",
        ["IndexError", "line 2: day = sys.argv[1]", "It needs arguments."],
    ),
    "fails half way": (
        SESSION + "spark.read.parquet('/nowhere/at/all')\n" + start("ck"),
        ["fails before it starts a query: AnalysisException", "PATH_NOT_FOUND", "line 5"],
    ),
    "needs something that was left out": (
        SESSION + 'spark.sql("CREATE TABLE t_left (id long)")\nspark.table("t_left")\n',
        ["TABLE_OR_VIEW_NOT_FOUND", "line 5: spark.sql('CREATE TABLE t_left", "once by hand"],
    ),
    "fails in a thread": (
        "import threading\none = threading.Thread(target=lambda: 1 / 0)\none.start()\none.join()\n",
        ["fails before it starts a query: ZeroDivisionError"],
    ),
    "lacks a module": (
        "import no_such_module_at_all\n",
        ["ModuleNotFoundError", "pip install no_such_module_at_all", "--py-files"],
    ),
    "is not valid Python": ("def broken(:\n", ["is not valid Python for this version", "line 1"]),
    "loops for ever": (
        "while True:\n    try:\n        pass\n    except Exception:\n        pass\n",
        ["has started no query in 1 seconds", "--script-limit"],
    ),
    "sleeps for ever": (
        "import time\ntime.sleep(1000)\n",
        ["has started no query in 1 seconds", "Nothing was started"],
    ),
    "of Connect": (
        "from pyspark.sql import SparkSession\n"
        "SparkSession.builder.remote('sc://127.0.0.1:1').getOrCreate()\n",
        ["uses Spark Connect"],
    ),
    "of Connect's own classes": (
        "from pyspark.sql.connect.streaming.readwriter import DataStreamWriter\n"
        "DataStreamWriter.__new__(DataStreamWriter).start()\n",
        ["uses Spark Connect"],
    ),
    "of DStreams": (
        SESSION + "import warnings; warnings.simplefilter('ignore')\n"
        "from pyspark.streaming import StreamingContext\n"
        "context = StreamingContext(spark.sparkContext, 1)\ncontext.start()\n",
        ["starts DStreams", "line 8"],
    ),
    "runs another program": (
        "import subprocess\nsubprocess.run(['touch', 'touched'])\n",
        ["NotCarriedOut", "runs another program: touch", "line 2", "catch PermissionError there"],
    ),
    "asks for a parameter": (
        "# Databricks notebook source\ndbutils.widgets.get('day')\n",
        ["asks for the parameter day", "-- day=VALUE"],
    ),
}


@pytest.mark.parametrize("trouble", TROUBLES)
def test_a_clear_sentence(
    trouble: str,
    spark: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    text, wanted = TROUBLES[trouble]
    script = tmp_path / "script.py"
    script.write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stdin", io.StringIO("2026-11-16\n"))
    options = ScriptOptions(limit_seconds=1 if "for ever" in trouble else 60)
    with (
        pytest.raises(WrongUse) as caught,
        built(str(script), checkpoints=(str(tmp_path / "other"),), script=options),
    ):
        pass
    said = str(caught.value)
    assert [words for words in wanted if words not in said] == [], said
    assert sorted(path.name for path in tmp_path.iterdir()) == ["script.py"]
    assert spark.streams.active == []


def test_the_query_that_is_named(spark: Any, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SESSION + start("a", '.queryName("first")') + start("b"))
    for query, name in (("first", "first"), ("1", "first"), ("2", "script")):
        with built(str(script), script=ScriptOptions(query=query)) as found:
            assert found.name == name
    with built(f"{script}:first") as found:
        assert found.name == "first"
    with built(str(script), checkpoints=("/elsewhere", "b")) as found:
        assert found.name == "script"
    with (
        pytest.raises(WrongUse, match="--query third: no query has this name"),
        built(str(script), script=ScriptOptions(query="third")),
    ):
        pass


def test_parameters_are_of_pipelines_and_arguments_of_scripts(spark: Any, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SESSION + start("a"))
    with (
        pytest.raises(WrongUse, match="is a script, which has no parameters"),
        built(str(script), {"day": "1"}),
    ):
        pass
    script.write_text(
        "from floodmark import pipeline\n@pipeline(checkpoint='a')\ndef one(spark, start): ...\n"
    )
    options = ScriptOptions(("--day", "1"))
    with pytest.raises(WrongUse, match="--set NAME=VALUE"), built(str(script), script=options):
        pass


def test_a_file_that_imports_its_pipelines(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "pipelines_beside.py").write_text(
        "from floodmark import pipeline\n\n\n@pipeline(checkpoint='a')\ndef one(spark, start):\n"
        "    return spark.readStream.format('rate').load().writeStream.format('noop')\n"
    )
    script = tmp_path / "script.py"
    script.write_text("from pipelines_beside import one\n")
    with built(str(script)) as found:
        assert found.name == "one"


def test_old_and_new_code_have_modules_of_one_name_each(spark: Any, tmp_path: Path) -> None:
    text = (
        SESSION + "from words_beside import COLUMN\nrows = rows.selectExpr('value AS ' + COLUMN)\n"
    )
    for folder in ("old", "new"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "words_beside.py").write_text(f"COLUMN = '{folder}_column'\n")
        (tmp_path / folder / "script.py").write_text(text + start("ck"))

    def columns(found: Any) -> str:
        from floodmark.engine.code.query import read_query

        return read_query(found.writer).schema_json

    with built(str(tmp_path / "new" / "script.py")) as new:
        with built(str(tmp_path / "old" / "script.py")) as old:
            assert "old_column" in columns(old)
        assert "new_column" in columns(new)
        assert "new_column" in columns(type(new)(*[None] * 4, new.again(), None))  # type: ignore[arg-type]
    assert "words_beside" not in sys.modules
