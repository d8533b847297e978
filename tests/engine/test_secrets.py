"""A real run whose every corner holds a secret: nothing that is written or printed has one."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from streams import put_orders

from floodmark.checkpoint.plan.tree_json import tree_to_json
from floodmark.checkpoint.start_note import last_start
from floodmark.cli.main import run
from planted import KINDS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# A file source takes any option; these it would act upon.
OPTIONS = {one.option: one.value for one in KINDS if one.option not in ("path", "url")}
URLS = [one.value for one in KINDS if one.option == "url"]
SET, CONF, ENVIRONMENT, STORAGE, PLACE, LITERAL = (
    f"Hu5h{number}qZ" for number in range(2001, 2007)
)
CANARIES = (*(one.canary for one in KINDS), SET, CONF, ENVIRONMENT, STORAGE, PLACE, LITERAL)

APP = """
import json
from floodmark.engine.pipelines.decorator import pipeline

OPTIONS = json.loads({options!r})
SAID = {said!r}

@pipeline(
    checkpoint={place!r} + "/ck",
    conf={{"spark.sql.shuffle.partitions": 1, "spark.sql.catalog.db.opener": {conf!r}}},
)
def orders(spark, start, *, db_password: str, region="eu", most: int = 5, fail: bool = False):
    reader = spark.readStream.schema("customerId STRING, amountPaid DOUBLE").options(**OPTIONS)
    rows = reader.option("url", {url!r}).option("header", True).csv({place!r} + "/orders")

    def write(rows, batch):
        if fail:
            raise ValueError(SAID + " for " + db_password)
        rows.count()

    key = "sha2(concat(customerId, '{literal}'), 256) AS customerId"
    totals = rows.selectExpr(key).groupBy("customerId").count()
    return totals.writeStream.options(**OPTIONS).outputMode("update").foreachBatch(write)
"""


def put_app(place: Path, name: str = "app.py", **changes: str) -> None:
    said = " | ".join(one.said.replace("\n", " ") for one in KINDS)
    options = json.dumps({**OPTIONS, **changes})
    text = APP.format(
        options=options, said=said, conf=CONF, url=URLS[0], literal=LITERAL, place=str(place)
    )
    (place / name).write_text(text)


def found_in(place: Path, printed: str) -> dict[str, list[str]]:
    """Where which canary is; the application itself may hold them."""
    found = {"printed": [one for one in CANARIES if one in printed]}
    for path in place.rglob("*"):
        if path.is_file() and path.suffix != ".py":
            data = path.read_bytes() + str(path).encode()
            found[str(path)] = [one for one in CANARIES if one.encode() in data]
    return {where: canaries for where, canaries in found.items() if canaries}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    put_orders(tmp_path / "orders", "0", ("c1", "1.50"), ("c2", "2.00"))
    put_app(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DB_PASSWORD", ENVIRONMENT)
    return tmp_path


@pytest.mark.spark
def test_a_run_a_failure_a_check_and_a_migration(
    spark: SparkSession, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["--set", f"db_password={SET}", "--set", "region=north", "--set", "most=7"]
    failing = ["--available-now", "--set", "fail=true", *given]
    migrating = ["migrate", "ck", "new", "--app", "app.py", "--drop-in-flight", *given]
    migrating += ["--conf", f"spark.sql.streaming.opener={CONF}"]
    put_app(place, "changed.py", apiKey="0ther-key-77")
    printed = []

    def ran(*arguments: str) -> int:
        status = run([*arguments])
        printed.append("".join(capsys.readouterr()))
        return status

    conf = ["--conf", f"spark.sql.acme.opener={CONF}"]
    assert ran("run", "app.py", "--available-now", *conf, *given) == 0, printed
    put_orders(place / "orders", "1", ("c1", "1.50"))
    found = [
        ran("run", "app.py", *failing),
        ran("run", "app.py", *failing, "--json"),
        ran("check", "ck", "app.py", *given),
        ran("check", "ck", "changed.py", *given),
        ran("check", "ck", "changed.py", "--json", *given),
        ran("check", "ck", "app.py", "--rehearse", *given),
        ran(*migrating, "--out", "plan.json"),
        ran(*migrating, "--execute", "--json"),
        ran(*migrating, "--execute"),  # the same request again is known by its digests
    ]
    # An option of the source that no rule knows may change its rows: not a plain yes.
    assert found == [5, 5, 0, 1, 1, 0, 0, 0, 0], "\n".join(printed)
    assert printed[1].count("ValueError: cannot connect") == 1
    # The source's and the sink's, in text and in JSON.
    assert "".join(printed).count("apikey has another value, which is hidden") == 4

    note = min((place / "ck/_floodmark/starts").glob("*.json"))
    noted = json.loads(note.read_text())
    assert noted["sources"][0]["options"]["path"].endswith("/orders")
    assert noted["parameters"]["most"] == "7"
    assert noted["parameters"]["region"].startswith("*** ")
    assert noted["sink_options"]["apikey"].startswith("*** ")
    last = last_start(noted)
    assert last is not None
    assert last.tree is not None  # packed in the note, so it is looked at unpacked as well
    printed.append(json.dumps(tree_to_json(last.tree)))
    assert found_in(place, "".join(printed)) == {}


@pytest.mark.parametrize(
    "arguments",
    [
        ["inspect", f"memory://me:{PLACE}@host/x"],
        ["inspect", f"memory://me:{PLACE}@host/x", "--json"],
        ["doctor", f"memory://me:{PLACE}@host/x"],
        ["scan", f"memory://me:{PLACE}@host/x"],
        ["state", f"nosuch://me:{PLACE}@host/x"],
        ["inspect", f"sftp://me:{PLACE}@127.0.0.1:1/x"],
        ["inspect", f"https://127.0.0.1:1/x?sig={PLACE}"],
        ["inspect", "memory://x", "--storage", f"secret={STORAGE}"],
        ["inspect", "nosuch://x", "--storage", f"secret={STORAGE}"],
        ["inspect", "memory://x", "--storage", STORAGE],
        ["copy", "ck", f"memory://me:{PLACE}@host/x"],
        ["backup", "ck", f"sftp://me:{PLACE}@127.0.0.1:1/x", "--execute"],
        ["upgrade", f"memory://me:{PLACE}@host/x", "new"],
        ["compact", "ck", "--sink", f"memory://me:{PLACE}@host/x"],
        ["rewind", "ck", "--to-batch", "0", "--sink", f"memory://me:{PLACE}@host/x"],
        ["restore", f"memory://me:{PLACE}@host/x", "new"],
        ["run", "app.py", "--set", SET],
        ["run", "app.py", "--set", f"most={SET}"],
        ["run", "app.py", "--set", f"fail={SET}"],
        ["run", "app.py", "--conf", CONF],
        ["run", "app.py", "--set", f"no_such={SET}", "--conf", f"spark.acme.opener={CONF}"],
        ["migrate", "ck", "new", "--app", "app.py", "--conf", CONF],
        ["inspect", "ck", f"--token={PLACE}"],
        ["deploy", "systemd", "app.py", "--", "--set", f"db_password={SET}"],
        ["deploy", "kubernetes", "app.py", "--image", "i", "--", f"--conf=spark.x.token={CONF}"],
    ],
)
def test_wrong_use_does_not_repeat_a_secret(
    arguments: list[str], place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status = run(arguments)
    printed = "".join(capsys.readouterr())
    assert status in (1, 2, 3, 4)
    assert printed.strip()
    assert found_in(place, printed) == {}


def test_a_secret_of_the_environment_is_hidden_in_an_error(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert os.environ["DB_PASSWORD"] == ENVIRONMENT
    (place / "app.py").write_text(
        "import os\nraise ValueError('the server says no to ' + os.environ['DB_PASSWORD'])\n"
    )
    assert run(["run", "app.py", "--available-now"]) == 2
    printed = "".join(capsys.readouterr())
    assert "the server says no to ***" in printed
    assert ENVIRONMENT not in printed
