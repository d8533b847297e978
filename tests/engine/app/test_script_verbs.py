"""A plain script through all verbs: started by Spark alone, changed, judged, carried over, run.

What comes out is compared with a batch query over all the input.
"""

from __future__ import annotations

import json
import os
import runpy
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pyspark
import pytest

from floodmark.cli.main import run
from floodmark.storage.files import open_files
from floodmark.storage.last_start import latest_note

pytestmark = pytest.mark.spark

OLD = """
import sys
from pyspark.sql import SparkSession, functions as F
from amounts_beside import cents

def main(checkpoint, name="totals"):
    spark = SparkSession.builder.getOrCreate()
    orders = spark.readStream.schema("customer string, amount string").json("INPUT")
    totals = orders.groupBy("customer").agg(F.sum(cents("amount")).alias("total"))
    query = (totals.writeStream.outputMode("complete").format("memory").queryName(name)
        .option("checkpointLocation", checkpoint).trigger(availableNow=True).start())
    query.awaitTermination()

if __name__ == "__main__":
    main(*sys.argv[1:])
"""
BESIDE = """
from pyspark.sql import functions as F, types as T

@F.udf(T.LongType())
def cents(amount):
    return round(float(amount) * 100)
"""


class Shop:
    def __init__(self, root: Path) -> None:
        self.root, self.input, self.checkpoint = root, root / "in", root / "ck"
        self.input.mkdir()
        (root / "app").mkdir()
        (root / "app" / "amounts_beside.py").write_text(BESIDE)
        self.old = self.script("old.py", OLD)

    def script(self, name: str, text: str) -> Path:
        path = self.root / "app" / name
        path.write_text(text.replace("INPUT", str(self.input)))
        return path

    def put(self, number: int, *orders: tuple[str, str]) -> None:
        rows = [json.dumps({"customer": who, "amount": amount}) for who, amount in orders]
        (self.input / f"{number}.json").write_text("\n".join(rows) + "\n")

    def files(self) -> dict[str, bytes]:
        return {str(p): p.read_bytes() for p in self.checkpoint.rglob("*") if p.is_file()}


@pytest.fixture
def shop(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    monkeypatch.chdir(tmp_path)
    made = Shop(tmp_path)
    made.put(1, ("c1", "1.50"), ("c2", "2.00"))
    monkeypatch.setattr(sys, "argv", ["old.py", str(made.checkpoint)])
    monkeypatch.syspath_prepend(str(tmp_path / "app"))
    # Workers of the session that all tests share do not have the script's folder.
    environment = spark.sparkContext.environment
    monkeypatch.setitem(environment, "PYTHONPATH", str(tmp_path / "app"))
    runpy.run_path(str(made.old), run_name="__main__")
    sys.modules.pop("amounts_beside", None)
    monkeypatch.delitem(environment, "PYTHONPATH")
    return made


def command(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, Any, str]:
    capsys.readouterr()
    status = run([str(one) for one in arguments])
    said = capsys.readouterr()
    return status, json.loads(said.out) if said.out.startswith("{") else said.out, said.err


def test_changed_code_is_judged_carried_over_and_goes_on(
    spark: Any, shop: Shop, capsys: pytest.CaptureFixture[str]
) -> None:
    before = shop.files()
    place = str(shop.checkpoint)
    status, found, _ = command(capsys, "check", place, shop.old, "--json", "--", place)
    assert (status, found["verdict"]) == (1, "unknown")  # no note of its start
    status, found, _ = command(
        capsys, "check", place, shop.old, "--old", shop.old, "--json", "--", place
    )
    assert (status, found["verdict"]) == (0, "same")

    changed = OLD.replace('alias("total"))', 'alias("total"), F.count("*").alias("orders"))')
    new = shop.script("new.py", changed)
    status, found, _ = command(
        capsys, "check", place, new, "--old", shop.old, "--rehearse", "--json", "--", place
    )
    assert (status, found["verdict"], found["decided_by"]) == (1, "needs-migration", "rehearsal")
    assert shop.files() == before

    target = str(shop.root / "ck2")
    given = ("migrate", place, target, "--app", new, "--old", shop.old, "--default", "count=0")
    status, found, words = command(capsys, *given, "--execute", "--json", "--", target)
    assert status == 0, words
    assert shop.files() == before
    shop.put(2, ("c1", "0.25"), ("c3", "4.00"))
    status, found, words = command(capsys, "run", new, "--json", "--", target, "carried")
    assert status == 0, words
    assert [one["ended"] for one in found["pipelines"]] == ["finished"]
    rows = {
        row["customer"]: (row["total"], row["orders"]) for row in spark.table("carried").collect()
    }
    assert rows == {"c1": (175, 1), "c2": (200, 0), "c3": (400, 1)}
    batch = spark.read.schema("customer string, amount string").json(str(shop.input))
    sums = batch.groupBy("customer").agg({"amount": "sum"}).collect()
    assert {row[0]: round(row[1] * 100) for row in sums} == {k: v[0] for k, v in rows.items()}
    # It was started so, and is known now.
    status, found, _ = command(capsys, "check", target, new, "--json", "--", target)
    assert (status, found["verdict"]) == (0, "same")


def test_a_run_looks_first_notes_and_reports(
    spark: Any, shop: Shop, capsys: pytest.CaptureFixture[str]
) -> None:
    place = str(shop.checkpoint)
    shop.put(2, ("c1", "0.25"))
    status, _, said = command(capsys, "run", shop.old, "--", place)
    assert status == 0
    assert "totals  goes on after batch 0" in said
    assert "batch 1" in said
    note = latest_note(open_files(place))
    assert note is not None
    assert (note["pipeline"], note["application"]) == ("totals", str(shop.old))
    assert (shop.checkpoint / "_floodmark" / "progress.jsonl").read_text().count("\n") == 1
    assert not (shop.checkpoint / "_floodmark" / "lease.json").exists()

    before = shop.files()
    other = shop.script("other.py", OLD.replace('groupBy("customer")', 'groupBy("amount")'))
    status, _, said = command(capsys, "run", other, "--", place)
    assert status == 4, said
    assert "Refused" in said
    assert shop.files() == before
    # A script that catches everything does not hide it.
    hiding = shop.script(
        "hiding.py",
        OLD.replace('groupBy("customer")', 'groupBy("amount")').replace(
            "    main(*sys.argv[1:])", "    try: main(*sys.argv[1:])\n    except Exception: pass"
        ),
    )
    assert command(capsys, "run", hiding, "--", place)[0] == 4


def test_how_a_script_ends_is_how_the_run_ends(
    spark: Any, shop: Shop, capsys: pytest.CaptureFixture[str]
) -> None:
    place = str(shop.checkpoint)
    leaving = shop.script("leaving.py", OLD + "    sys.exit(7)\n")
    assert command(capsys, "run", leaving, "--", place)[0] == 7
    broken = shop.script("broken.py", OLD + "    raise KeyError('no region')\n")
    status, _, said = command(capsys, "run", broken, "--", place)
    assert status == 1
    assert "KeyError: 'no region'" in said
    assert "broken.py has failed: KeyError" in said
    shop.put(3, ("c9", "much"))
    status, _, said = command(capsys, "run", shop.old, "--", place)
    assert status == 5
    assert "query totals failed: batch 1" in said
    assert "ValueError: could not convert string to float: 'much'" in said
    status, _, said = command(capsys, "run", shop.old, "--set", "a=1", "--", place)
    assert status == 2
    assert "Give them after two dashes" in said


def test_a_script_that_fails_starts_again_in_a_new_process(
    spark: Any, shop: Shop, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each command line is one process of the run; what would execute it anew is left out."""
    place = str(shop.checkpoint)
    begun: list[list[str]] = []
    monkeypatch.setattr(os, "execv", lambda program, arguments: begun.append(arguments))
    monkeypatch.delenv("FLOODMARK_CARRIED", raising=False)
    given = ("run", shop.old, "--restart", "on-failure", "--json", "--", place)
    shop.put(3, ("c9", "much"))
    said = ""
    for times in (1, 2):
        status, _, said = command(capsys, *given)
        assert (status, len(begun)) == (5, times), said
        assert "the script starts again in" in said
    shop.put(3, ("c9", "7.00"))
    status, found, said = command(capsys, *given)
    assert (status, len(begun)) == (0, 2), said
    (report,) = found["pipelines"]
    assert (report["restarts"], report["batches"], report["rows"]) == (2, 1, 1)
    assert "FLOODMARK_CARRIED" not in os.environ


def test_the_record_that_a_script_fails_at_is_named(
    spark: Any, shop: Shop, capsys: pytest.CaptureFixture[str]
) -> None:
    place = str(shop.checkpoint)
    shop.put(3, ("c1", "1.00"), ("c9", "much"), ("c2", "1.00"))
    assert command(capsys, "run", shop.old, "--", place)[0] == 5
    with pytest.raises(SystemExit) as ended:
        command(capsys, "run", shop.old, "--bisect", "--json", "--", place)
    assert ended.value.code == 1
    found = json.loads(capsys.readouterr().out)
    (culprit,) = found["culprits"]
    (record,) = culprit["records"]
    assert (record["file"].rpartition("/")[2], record["line"]) == ("3.json", 2)


NOTEBOOK = """# Databricks notebook source
dbutils.widgets.text("checkpoint", "")
place = dbutils.widgets.get("checkpoint")

# COMMAND ----------

# MAGIC %sh rm -rf everything

rows = spark.readStream.schema("customer string, amount string").json("INPUT")
query = (rows.writeStream.format("noop").option("checkpointLocation", place)
    .trigger(availableNow=True).start())
query.awaitTermination()
dbutils.fs.rm(place, True)
"""


def test_a_notebook_runs(spark: Any, shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    notebook = shop.script("notebook.py", NOTEBOOK)
    place = shop.root / "noted"
    status, _, said = command(capsys, "run", notebook, "--", f"checkpoint={place}")
    assert status == 0, said
    assert "not carried out: dbutils.fs.rm" in said
    assert (place / "commits" / "0").exists()
    assert latest_note(open_files(str(place))) is not None
    cell = {"cell_type": "code", "source": NOTEBOOK.replace("INPUT", str(shop.input))}
    jupyter = shop.root / "app" / "notebook.ipynb"
    jupyter.write_text(json.dumps({"cells": [cell], "nbformat": 4, "metadata": {}}))
    shop.put(2, ("c1", "1.00"))
    status, _, said = command(capsys, "run", jupyter, "--", f"checkpoint={place}")
    assert status == 0, said
    assert (place / "commits" / "1").exists()


SUBMITTED = """
import sys
from pyspark.sql import SparkSession
from amounts_beside import cents

spark = SparkSession.builder.getOrCreate()
orders = spark.readStream.schema("customer string, amount string").json("INPUT")
query = (orders.select(cents("amount")).writeStream.format("noop").queryName("submitted")
    .option("checkpointLocation", sys.argv[1]).trigger(availableNow=True).start())
query.awaitTermination()
print("the script goes on", sys.argv[1:])
"""


def test_spark_submit_with_one_conf_line(tmp_path: Path) -> None:
    """The program that pip makes of the entry point `floodmark-python` starts the script."""
    program = tmp_path / "floodmark-python"
    program.write_text(
        f"#!{sys.executable}\nfrom floodmark.__main__ import as_python\nas_python()\n"
    )
    program.chmod(0o755)
    beside = tmp_path / "libs"
    beside.mkdir()
    (beside / "amounts_beside.py").write_text(BESIDE)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.json").write_text('{"customer": "c1", "amount": "1.50"}\n')
    script = tmp_path / "submitted.py"
    script.write_text(SUBMITTED.replace("INPUT", str(tmp_path / "in")))
    checkpoint = tmp_path / "ck"
    submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    ran = subprocess.run(
        [
            str(submit),
            *("--master", "local[1]", "--conf", "spark.ui.enabled=false"),
            *("--py-files", str(beside / "amounts_beside.py")),
            *("--conf", f"spark.pyspark.driver.python={program}"),
            *(str(script), str(checkpoint), "--day", "3"),
        ],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"},
        timeout=400,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert f"the script goes on ['{checkpoint}', '--day', '3']" in ran.stdout
    # Spark's PythonRunner gives the script's standard error out on its standard output.
    assert "submitted  begins in a new checkpoint" in ran.stdout, ran.stdout
    note = latest_note(open_files(str(checkpoint)))
    assert note is not None
    assert note["pipeline"] == "submitted"
    assert not (checkpoint / "_floodmark" / "lease.json").exists()
    assert (checkpoint / "_floodmark" / "progress.jsonl").exists()


def test_upgrade_and_bootstrap_take_a_script(
    spark: Any, shop: Shop, capsys: pytest.CaptureFixture[str]
) -> None:
    place, before = str(shop.checkpoint), shop.files()
    new = str(shop.root / "new")
    status, found, said = command(
        capsys, "upgrade", place, new, "--app", shop.old, "--json", "--", new
    )
    assert status == 0, said
    assert found["plan"]["verb"] == "upgrade"
    table = str(shop.root / "state.json")
    Path(table).write_text('{"customer": "c1", "sum": 150}\n')
    status, found, said = command(
        capsys, "bootstrap", new, "--app", shop.old, "--state", table, "--json", "--", new
    )
    assert status == 0, said
    assert found["plan"]["verb"] == "bootstrap"
    assert shop.files() == before
    assert not Path(new).exists()


AUTO = """
import sys, time
sys.path.insert(0, "FOLDER")
import floodmark.auto
from pyspark.sql import SparkSession, functions as F

spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()

@F.udf("long")
def doubled(value):
    return value * 2

rows = spark.readStream.format("rate").option("rowsPerSecond", 5).load()
rows.select(doubled("value").alias("value")).writeStream.format("noop") \\
    .option("checkpointLocation", sys.argv[1]).start()
while True:
    time.sleep(1)
"""


def test_one_import_makes_a_plain_script_stop_after_its_batch(tmp_path: Path) -> None:
    script = tmp_path / "auto.py"
    script.write_text(AUTO.replace("FOLDER", str(tmp_path)))
    checkpoint = tmp_path / "ck"
    with subprocess.Popen(
        [sys.executable, str(script), str(checkpoint)],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"},
        start_new_session=True,
    ) as process:
        said: list[str] = []
        reading = threading.Thread(target=lambda: said.extend(process.stderr or ()), daemon=True)
        reading.start()
        end = time.monotonic() + 300
        while not (checkpoint / "commits" / "1").exists() and time.monotonic() < end:
            assert process.poll() is None, "".join(said)
            time.sleep(0.1)
        assert (checkpoint / "_floodmark" / "lease.json").exists()
        running = _logged(checkpoint, "offsets")
        process.send_signal(signal.SIGTERM)
        assert process.wait(300) == 0, "".join(said)
        reading.join(300)
    assert any("finishing the running batch" in line for line in said)
    assert not (checkpoint / "_floodmark" / "lease.json").exists()
    assert latest_note(open_files(str(checkpoint))) is not None
    # One more may have been planned while the signal was on its way.
    commits = _logged(checkpoint, "commits")
    assert running <= commits
    assert len(_logged(checkpoint, "offsets") - commits) <= 1


def _logged(checkpoint: Path, log: str) -> set[str]:
    return {path.name for path in (checkpoint / log).iterdir() if path.name.isdigit()}


def test_a_session_of_the_scripts_own(tmp_path: Path) -> None:
    """In a JVM of its own: the builder's options, a module beside it, another folder."""
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "amounts_beside.py").write_text(BESIDE)
    text = OLD.replace("INPUT", str(tmp_path / "in")).replace(
        "SparkSession.builder",
        'SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")'
        '.config("spark.sql.shuffle.partitions", "3")',
    )
    script = tmp_path / "app" / "script.py"
    script.write_text(text.replace('"memory"', '"noop"').replace('"complete"', '"update"'))
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.json").write_text('{"customer": "c1", "amount": "1.50"}\n')
    environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"}
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()

    def floodmark(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "floodmark", *arguments],
            capture_output=True,
            text=True,
            cwd=elsewhere,
            env=environment,
            timeout=300,
            check=False,
        )

    checkpoint = str(tmp_path / "ck")
    ran = floodmark(str(script), checkpoint)
    assert ran.returncode == 0, ran.stderr
    assert "totals finished: 1 batch, 1 row read" in ran.stdout
    judged = floodmark("check", checkpoint, str(script), "--rehearse", "--json", "--", checkpoint)
    assert judged.returncode == 0, judged.stderr
    assert json.loads(judged.stdout)["verdict"] == "same"
    pinned = (tmp_path / "ck" / "offsets" / "0").read_text()
    assert '"spark.sql.shuffle.partitions":"3"' in pinned
    assert list(elsewhere.iterdir()) == []


def test_old_code_of_a_revision_is_adopted(
    spark: Any, shop: Shop, capsys: pytest.CaptureFixture[str]
) -> None:
    def git(*arguments: str) -> None:
        who = ("-c", "user.name=t", "-c", "user.email=t@example.org")
        subprocess.run(["git", "-C", str(shop.root), *who, *arguments], check=True)

    place = str(shop.checkpoint)
    script = shop.script("orders.py", OLD)
    git("init", "-q")
    git("add", "app")
    git("commit", "-qm", "old")
    shop.script("orders.py", OLD.replace("sum(cents", "max(cents"))
    (shop.root / "app" / "amounts_beside.py").write_text(BESIDE.replace("100", "1000"))
    before = shop.files()
    old = ("--old-ref", "HEAD", "--json")
    status, found, words = command(capsys, "check", place, script, *old, "--", place)
    assert (status, found["verdict"]) == (1, "needs-migration"), words
    told = " ".join(reason["what"] for reason in found["reasons"])
    assert "max" in told, told
    assert shop.files() == before
    status, _, words = command(capsys, "check", place, script, "--old-ref", "v9", "--", place)
    assert status == 2
    assert "--old-ref v9: git does not find it" in words

    git("checkout", "-q", "--", "app")
    status, found, words = command(capsys, "check", place, script, *old, "--adopt", "--", place)
    assert (status, found["verdict"]) == (0, "same")
    noted = f"Noted as the code of the last start, in {place}/_floodmark/starts: {script} of HEAD"
    assert noted in words
    status, found, _ = command(capsys, "check", place, script, "--json", "--", place)
    assert (status, found["verdict"]) == (0, "same")
    status, _, words = command(capsys, "check", place, script, *old, "--adopt", "--", place)
    assert status == 2
    assert "already has a note of its last start" in words


SETTINGS = """
import sys
from pyspark.sql import SparkSession, functions as F

spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")SET.getOrCreate()
days = spark.readStream.schema("day string, n long").json("INPUT")
totals = days.groupBy(F.try_to_timestamp("day", F.lit("yyyy-MM-dd")).alias("d")).agg(F.sum("n"))
(totals.writeStream.outputMode("complete").format("noop").option("checkpointLocation", "CK")
    .trigger(availableNow=True).start().awaitTermination())
"""


def test_what_new_code_sets_for_all_of_spark_is_not_the_old_codes(
    spark: Any, tmp_path: Path
) -> None:
    """In a process whose Spark the new code starts: its builder's settings are Spark's then."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.json").write_text('{"day": "2026-1-1", "n": 1}\n')
    text = SETTINGS.replace("INPUT", str(tmp_path / "in")).replace("CK", str(tmp_path / "ck"))
    policy = '.config("spark.sql.legacy.timeParserPolicy", "LEGACY")'
    zone = '.config("spark.sql.session.timeZone", "Asia/Tokyo")'
    old, new = tmp_path / "old.py", tmp_path / "new.py"
    old.write_text(text.replace("SET", ""))
    new.write_text(text.replace("SET", policy + zone))
    days = spark.readStream.schema("day string, n long").json(str(tmp_path / "in"))
    writer = days.groupBy("day").count().writeStream.outputMode("complete").format("noop")
    writer = writer.option("checkpointLocation", str(tmp_path / "ck")).trigger(availableNow=True)
    assert writer.start().awaitTermination(300)
    ran = subprocess.run(
        [
            *(sys.executable, "-m", "floodmark", "check", str(tmp_path / "ck"), str(new)),
            *("--old", str(old), "--json"),
        ],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    found = json.loads(ran.stdout)
    assert found["verdict"] not in ("same", "compatible")
    changed = [one["what"] for one in found["reasons"] if one["code"] == "FM355"]
    assert any("timeParserPolicy" in what for what in changed), found
    assert any("timeZone" in what for what in changed), found
