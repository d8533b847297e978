"""A schema that the user gives is compared with the bytes before a row is shown."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from floodmark import api
from floodmark.cli.main import run
from floodmark.state.shapes.operators import Shape

GOLDEN = Path(__file__).parents[1] / "golden"


STATES = [
    path
    for path in sorted(GOLDEN.glob("*/*/checkpoint/state"))
    if "in-flight-first" not in path.parts  # it has no state yet
]


def without_schema(name: str, place: Path) -> Path:
    shutil.copytree(GOLDEN / name / "checkpoint", place)
    for schema in place.glob("state/*/*/_metadata/schema"):
        schema.unlink()
    return place


@pytest.mark.parametrize("name", ["3.5/sales-hdfs", "3.5/sales-rocksdb"])
@pytest.mark.parametrize(
    ("key", "value", "why"),
    [
        ("customerId STRING", "total DECIMAL(20,2), n BIGINT", "The values: "),
        ("customerId STRING", "a BIGINT", "The values: "),
        ("customerId STRING", "total STRING", "The values: "),
        ("customerId BIGINT", "total BIGINT", "The keys: "),
        ("customerId STRING, other BIGINT", "total BIGINT", "The keys: "),
        ("customerId ARRAY<STRING>, other STRING", "total BIGINT", "The keys: "),
    ],
)
@pytest.mark.parametrize("option", [[], ["--json"], ["--stats"], ["--key", '{"customerId": "c1"}']])
def test_a_schema_that_does_not_fit_is_refused(
    name: str,
    key: str,
    value: str,
    why: str,
    option: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    place = without_schema(name, tmp_path / "cp")
    given = ["--key-schema", key, "--value-schema", value]
    assert run(["state", str(place), *given, *option]) == 3
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "do not fit the rows of the state" in printed.err
    assert why in printed.err


@pytest.mark.parametrize("path", STATES, ids=lambda path: "/".join(path.parts[-4:-2]))
def test_every_schema_of_spark_fits_its_own_rows(path: Path) -> None:
    """No row that Spark wrote is refused for the schema that Spark wrote beside it."""
    checkpoint = api.open(str(path.parent))
    seen = 0
    for operator in checkpoint.state_operators:
        for store in checkpoint.state(operator.operator).stores:
            view = checkpoint.state(operator.operator, store)
            if view.avro or view.reading.schema is None or view.reading.shape is not Shape.PAIRS:
                continue
            for partition in view.partitions:
                with view.at.open(partition) as opened:
                    layout = view.layout(opened)
                    if not layout.has_plain_keys:
                        continue
                    for records in opened.records():
                        assert layout.misfit(records) is None, (store, partition)
                        seen += len(records)
    assert seen or not checkpoint.state_operators or "transform" in str(path) or "join" in str(path)


def test_sparks_own_schema_decides(capsys: pytest.CaptureFixture[str]) -> None:
    """BIGINT and DOUBLE are the same bytes; the schema file tells them apart."""
    place = str(GOLDEN / "4.2/sales-hdfs/checkpoint")
    own = api.state(place)
    given = ["--key-schema", "who STRING", "--value-schema"]
    assert run(["state", place, *given, "n DOUBLE"]) == 2
    assert own.value_schema in capsys.readouterr().err
    assert run(["state", place, *given, own.value_schema, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [row["value"] for row in rows] == [row["value"] for row in own.rows()]
