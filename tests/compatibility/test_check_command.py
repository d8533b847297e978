"""`floodmark check` from end to end: text, JSON, exit status, rehearsal, and nothing touched."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from compatibility.laboratory import digest
from compatibility.queries import put_events
from floodmark.cli.main import run
from floodmark.engine.pipelines.application import load_application
from floodmark.engine.run.options import RunOptions
from floodmark.engine.run.runtime import run_application

pytestmark = pytest.mark.spark
SCHEMA = "user string, product string, amount double, qty long, at timestamp"
APPLICATION = """
from pyspark.sql import functions as f
from floodmark import pipeline


@pipeline(checkpoint="{folder}/ck", needs=())
def totals(spark, start, least=0):
    rows = spark.readStream.schema("{schema}").json("{folder}/events").where(f"qty >= {{least}}")
    rows = rows.groupBy("user").agg({aggregates})
    writer = rows.writeStream.outputMode("update").trigger(availableNow=True)
    return writer.foreachBatch(keep)


def keep(batch, number):
    rows = [str(row) for row in batch.collect()]
    with open("{folder}/kept", "a") as out:
        out.write(f"{{number}}: {{len(rows)}}\\n")
"""


@pytest.fixture
def folder(spark: Any, tmp_path: Path) -> Path:
    for batch in (1, 2):
        put_events(tmp_path / "events", batch)
    write(tmp_path, 'f.sum("amount").alias("total")')
    run_application(load_application(str(tmp_path / "app.py")), RunOptions())
    put_events(tmp_path / "events", 3)
    return tmp_path


def write(folder: Path, aggregates: str) -> None:
    text = APPLICATION.format(folder=folder, schema=SCHEMA, aggregates=aggregates)
    (folder / "app.py").write_text(text)


def check(folder: Path, *options: str) -> int:
    return run(["check", str(folder / "ck"), str(folder / "app.py"), *options])


def test_check_says_what_changed_and_touches_nothing(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before, kept = digest(folder / "ck"), (folder / "kept").read_text()
    assert check(folder) == 0
    assert "Yes: nothing that matters" in capsys.readouterr().out

    assert check(folder, "--set", "least=1", "--json") == 1
    answer = json.loads(capsys.readouterr().out)
    assert (answer["verdict"], answer["decided_by"]) == ("unknown", "rules")
    assert [one["rule"] for one in answer["reasons"]] == ["filter-changed"]
    assert answer["not_compared"] == []
    assert check(folder, "--set", "least=1", "--accept", "filter-changed") == 0
    assert "Accepted by name" in capsys.readouterr().out

    write(folder, 'f.sum("amount").alias("total"), f.max("qty")')
    assert check(folder, "--json") == 1
    answer = json.loads(capsys.readouterr().out)
    assert answer["verdict"] == "needs-migration"
    assert {"code", "what", "where", "do"} <= set(answer["reasons"][0])
    assert (answer["reasons"][0]["code"], answer["reasons"][0]["where"]) == ("FM322", "state/0")
    assert "migrate" in answer["reasons"][0]["do"]

    assert check(folder, "--rehearse") == 1
    told = capsys.readouterr().out
    assert "STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE" in told
    assert "refused-in-rehearsal (FM352)" in told
    assert "aggregates-changed (FM322)" in told

    write(folder, 'f.sum("amount").alias("paid")')
    assert check(folder, "--rehearse", "--json") == 0
    assert json.loads(capsys.readouterr().out)["decided_by"] == "rehearsal"
    assert check(folder, "--empty-sources", "--json") == 0
    assert json.loads(capsys.readouterr().out)["decided_by"] == "rehearsal"

    assert digest(folder / "ck") == before
    assert (folder / "kept").read_text() == kept
    assert sorted(path.name for path in (folder / "events").iterdir()) == [
        "1.json",
        "2.json",
        "3.json",
    ]


def test_wrong_use_is_told(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["check", str(folder / "none"), str(folder / "app.py")]) == 3
    assert run(["check", str(folder / "ck"), str(folder / "no.py")]) == 2
    assert check(folder, "--set", "colour=red") == 2
    (folder / "app.py").write_text("raise ValueError('broken')")
    assert check(folder) == 2
    assert "fails before it starts a query: ValueError: broken" in capsys.readouterr().err


def test_old_code_that_is_given_takes_the_place_of_a_note(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As with a plain script's checkpoint: nothing tells, until somebody has the old code."""
    shutil.copy(folder / "app.py", folder / "old.py")
    shutil.rmtree(folder / "ck/_floodmark/starts")
    assert check(folder, "--json") == 1
    answer = json.loads(capsys.readouterr().out)
    assert answer["verdict"] == "unknown"
    assert "the sink" in answer["not_compared"]

    old = ("--old", str(folder / "old.py"))
    assert check(folder, *old, "--json") == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["verdict"], answer["not_compared"]) == ("same", [])

    write(folder, 'f.sum(-f.col("amount")).alias("total")')
    assert check(folder, *old) == 1
    assert "aggregates-mean-another" in capsys.readouterr().out
