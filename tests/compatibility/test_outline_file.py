"""An outline says what a checkpoint is, and `check` judges by it as by the checkpoint."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from compatibility.queries import put_events
from floodmark import api
from floodmark.cli.main import run
from floodmark.diagnosis.held import gather_held
from floodmark.engine.pipelines.application import load_application
from floodmark.engine.run.options import RunOptions
from floodmark.engine.run.runtime import run_application
from floodmark.errors import MalformedFile, UnknownVersion
from floodmark.rules.restarts.outline_file import outline_text, parse_outline
from floodmark.storage.files import open_files
from floodmark.storage.load import load

GOLDEN = Path(__file__).parents[1] / "golden"
CHECKPOINTS = sorted(path.parent for path in GOLDEN.glob("*/*/checkpoint/offsets"))
SCHEMA = "user string, product string, amount double, qty long, at timestamp"
APPLICATION = """
from pyspark.sql import functions as f
from floodmark import pipeline


@pipeline(checkpoint="{folder}/{checkpoint}", needs=())
def totals(spark, start):
    rows = spark.readStream.schema("{schema}").json("{folder}/events")
    rows = rows.where("product <> 'a secret of the data'").groupBy("user").agg({aggregates})
    writer = rows.writeStream.outputMode("update").format("noop").trigger(availableNow=True)
    return writer.option("token", "s3cr3t-token")
"""
SUM = 'f.sum("amount").alias("total")'


def test_an_outline_without_the_code_says_what_a_gate_lacks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`check` by it is `unknown` for unchanged code, too, so that every pull request fails."""
    plain = tmp_path / "a plain one"
    shutil.copytree(GOLDEN / "4.2" / "sales-hdfs" / "checkpoint", plain)
    shutil.rmtree(plain / "_floodmark", ignore_errors=True)
    assert run(["outline", str(plain), "-o", str(tmp_path / "sales.json")]) == 0
    said = capsys.readouterr()
    assert f"floodmark check '{plain}' APP.py --old APP.py --adopt" in said.err
    assert said.out == ""


@pytest.mark.parametrize("place", CHECKPOINTS, ids=lambda path: "-".join(path.parts[-3:-1]))
def test_an_outline_comes_back_as_what_the_rules_ask(place: Path) -> None:
    files = open_files(str(place))
    checkpoint = load(files)
    held = gather_held(files, checkpoint)
    text = outline_text(held)
    again = parse_outline(text.encode(), "outline")
    assert again.held == held.held
    assert again.schemas == held.schemas
    assert again.checkpoint.conf == checkpoint.conf
    assert [one.kind for one in again.checkpoint.sources] == [
        one.kind for one in checkpoint.sources
    ]
    assert (again.checkpoint.in_flight_batch is None) == (checkpoint.in_flight_batch is None)
    assert len(text) < 200_000
    # Made of the same again, it has the same lines.
    assert outline_text(gather_held(files, load(files))) == text


def test_positions_do_not_stand_in_it(tmp_path: Path) -> None:
    import samples

    texts = []
    for batches in (20, 30):
        cp = samples.write(tmp_path / "cp", samples.sales(batches))
        texts.append(api.outline(str(cp)))
        shutil.rmtree(cp)
    assert texts[0] == texts[1]
    assert json.loads(texts[0])["sources"][0]["reads"]


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b"[]", MalformedFile),
        (b"{}", MalformedFile),
        (b'{"floodmark": "checkpoint-outline", "version": 1}', MalformedFile),
        (b'{"floodmark": "checkpoint-outline", "version": 2}', UnknownVersion),
        (b"\xff\xfe", MalformedFile),
        (b'{"floodmark": "checkpoint-outline", "version": 1, "sources": 7, "state": {}, '
         b'"checkpoint": [], "begun": 1, "in_flight": 0, "logs": 3}', MalformedFile),
        (b"[" * 100_000, MalformedFile),
    ],
)  # fmt: skip
def test_a_file_that_is_none_is_refused(
    data: bytes, error: type[Exception], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(error):
        parse_outline(data, "outline")
    (tmp_path / "outline.json").write_bytes(data)
    assert run(["check", str(tmp_path / "outline.json"), "app.py"]) == 3
    told = capsys.readouterr().err
    assert "Traceback" not in told
    assert ("A newer floodmark probably wrote it" in told) == (error is UnknownVersion)


@pytest.fixture
def folder(spark: Any, tmp_path: Path) -> Path:
    for batch in (1, 2):
        put_events(tmp_path / "events", batch)
    write(tmp_path, SUM)
    run_application(load_application(str(tmp_path / "app.py")), RunOptions())
    return tmp_path


def write(folder: Path, aggregates: str, checkpoint: str = "ck") -> None:
    text = APPLICATION.format(
        folder=folder, schema=SCHEMA, aggregates=aggregates, checkpoint=checkpoint
    )
    (folder / "app.py").write_text(text)


@pytest.mark.spark
def test_a_pull_request_is_judged_where_the_checkpoint_is_not(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outline, app = folder / "streams" / "totals.outline.json", str(folder / "app.py")
    assert run(["outline", str(folder / "ck"), "-o", str(outline)]) == 0
    text = outline.read_text()
    assert "s3cr3t" not in text
    assert "a secret" not in text
    assert "1.json" not in text
    (folder / "ck").rename(folder / "away")
    capsys.readouterr()
    assert run(["check", str(outline), app]) == 0
    assert "Yes: nothing that matters" in capsys.readouterr().out
    assert run(["check", str(outline), app, "--rehearse", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["decided_by"] == "rehearsal"
    write(folder, f'{SUM}, f.count("*").alias("n")')
    assert run(["check", str(outline), app, "--json"]) == 1
    answer = json.loads(capsys.readouterr().out)
    assert answer["verdict"] == "needs-migration"
    assert f"floodmark migrate {folder}/ck {folder}/ck-new --app {app}" in answer["command"]
    named = (
        f"Then change the checkpoint of {app} from {folder}/ck to {folder}/ck-new, and start it."
    )
    assert answer["then"] == named
    assert run(["check", str(outline), app, "--rehearse", "--json"]) == 1
    answer = json.loads(capsys.readouterr().out)
    assert "refused-in-rehearsal" in {one["rule"] for one in answer["reasons"]}
    (folder / "away").rename(folder / "ck")
    write(folder, f'{SUM}, f.count("*").alias("n")', checkpoint="ck-2")
    assert run(["check", str(folder / "ck"), app, "--json"]) == 1
    answer = json.loads(capsys.readouterr().out)
    assert answer["verdict"] == "needs-migration"
    # The code names a checkpoint that is not there yet: that is the one to make.
    assert f"floodmark migrate {folder}/ck {folder}/ck-2 --app {app}" in answer["command"]
    assert answer["then"] == f"Then start {app}; its code names the checkpoint {folder}/ck-2."
