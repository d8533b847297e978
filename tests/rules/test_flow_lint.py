"""lint reads the flows of declarative pipelines: what streams, what a view brings along."""

from __future__ import annotations

from pathlib import Path

import pytest

from floodmark import api
from floodmark.errors import CannotRead, MalformedFile

HEAD = """\
from pyspark import pipelines as dp
from pyspark.sql import functions as F

@dp.temporary_view
def late():
    rows = spark.readStream.schema("id string, at timestamp").json("/in")
    return rows.withWatermark("at", "1 hour")

@dp.temporary_view(name="plain")
def made_by_another_name():
    return spark.readStream.schema("id string, at timestamp").json("/in")

"""


def rules(tmp_path: Path, flow: str, head: str = HEAD) -> list[str]:
    path = tmp_path / "flows.py"
    path.write_text(head + flow)
    return [one.rule for one in api.lint(str(path))]


@pytest.mark.parametrize("decorator", ["@dp.table", '@dp.append_flow(target="t")', "@dp.table()"])
def test_a_flow_writes_in_append_mode(decorator: str, tmp_path: Path) -> None:
    flow = (
        f'{decorator}\ndef f():\n    return spark.readStream.table("{{}}").groupBy("id").count()\n'
    )
    assert rules(tmp_path, flow.format("plain")) == ["append-without-watermark"]
    assert rules(tmp_path, flow.format("late")) == []  # the view has the watermark
    assert rules(tmp_path, flow.format("of_another_file")) == []  # nobody can tell here


def test_a_flow_needs_no_checkpoint_of_its_own_and_is_started_by_the_runner(tmp_path: Path) -> None:
    assert rules(tmp_path, '@dp.table\ndef f():\n    return spark.readStream.table("late")\n') == []


def test_state_and_sources_of_a_flow(tmp_path: Path) -> None:
    flow = '@dp.table\ndef f():\n    seen = spark.readStream.table("plain")\n'
    assert rules(tmp_path, flow + '    return seen.dropDuplicates(["id"])\n') == [
        "state-without-watermark"
    ]
    read = '@dp.table\ndef f():\n    return spark.readStream.format("socket").load()\n'
    assert rules(tmp_path, read) == ["non-replayable-source"]


@pytest.mark.parametrize(
    "head",
    [
        "import pyspark.pipelines as dp\n",
        "import pyspark.pipelines\n",
        "from pyspark.pipelines import table\n",
        "from pyspark.pipelines import table as t\n",
    ],
)
def test_however_it_is_imported(head: str, tmp_path: Path) -> None:
    name = {"dp": "dp.table", "table": "table", "t": "t"}.get(
        head.split()[-1], "pyspark.pipelines.table"
    )
    flow = f"@{name}\ndef f():\n    return spark.read.json('/in')\n"
    assert rules(tmp_path, flow, head) == ["flow-of-another-kind"]


def test_a_table_of_another_module_is_no_flow(tmp_path: Path) -> None:
    flow = "@dp.table\ndef f():\n    return spark.read.json('/in')\n"
    assert rules(tmp_path, flow, "import dash as dp  # pipelines\n") == []
    assert rules(tmp_path, flow.replace("dp", "dlt"), "import dlt\n") == []  # takes both


def test_views_that_read_each_other_come_to_an_end(tmp_path: Path) -> None:
    view = '@dp.temporary_view\ndef {}():\n    return spark.readStream.table("{}")\n'
    flow = '@dp.table\ndef f():\n    return spark.readStream.table("a").groupBy("id").count()\n'
    assert rules(tmp_path, view.format("a", "b") + view.format("b", "a") + flow) == []


def test_a_specification_stands_for_its_definitions(tmp_path: Path) -> None:
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "flows.py").write_text(
        HEAD + "@dp.table\ndef f():\n    return spark.range(3)\n"
    )
    (tmp_path / "code" / "more.sql").write_text("CREATE STREAMING TABLE t;")
    spec = tmp_path / "spark-pipeline.yml"
    spec.write_text("name: p\nstorage: file:///s\nlibraries:\n  - glob: {include: code/**}\n")
    assert [one.rule for one in api.lint(str(spec))] == ["flow-of-another-kind"]
    spec.write_text("name: p\nstorage: file:///s\nlibraries:\n  - glob: {include: cdoe/**}\n")
    with pytest.raises(CannotRead, match="names no definitions"):  # not: nothing found
        api.lint(str(spec))
    spec.write_text("name: [")
    with pytest.raises(MalformedFile, match="no YAML"):
        api.lint(str(spec))


@pytest.mark.parametrize(
    ("statement", "found"),
    [
        ("CREATE STREAMING TABLE t AS SELECT * FROM STREAM orders", []),
        ("CREATE STREAMING TABLE t AS SELECT * FROM STREAM(orders) o JOIN sizes USING (id)", []),
        ("CREATE STREAMING TABLE t AS SELECT * FROM orders -- FROM STREAM orders", ["t"]),
        ("CREATE STREAMING TABLE `t` AS SELECT 'from stream x;' s FROM orders", ["`t`"]),
        ("create flow f as insert into t by name select * from orders", ["f"]),
        ("CREATE MATERIALIZED VIEW v AS SELECT * FROM STREAM orders", ["v"]),
        ("CREATE MATERIALIZED VIEW v AS SELECT * FROM orders", []),
        ("CREATE STREAMING TABLE t; CREATE STREAMING TABLE u (a INT)", []),
        ("CREATE STREAMING TABLE t FLOW AUTO CDC FROM STREAM c KEYS (id) SEQUENCE BY at", []),
        ("CREATE OR REFRESH STREAMING TABLE t AS SELECT * FROM orders", []),  # Databricks'
        ("CREATE STREAMING TABLE t AS SELECT * FROM read_stream('x')", []),  # nobody can tell here
        ("CREATE STREAMING TABLE t AS SELECT stream FROM orders", []),
        ("CREATE STREAMING TABLE t -- floodmark: allow flow-of-another-kind\nAS SELECT 1", []),
        ("'", []),
        ("/* CREATE STREAMING TABLE t AS SELECT 1", []),
    ],
)
def test_definitions_in_sql(statement: str, found: list[str], tmp_path: Path) -> None:
    """A streaming table that reads no STREAM: `spark-pipelines` does not run it."""
    (tmp_path / "sql").mkdir()
    (tmp_path / "sql" / "a.sql").write_text(f"{statement};\n")
    spec = tmp_path / "spark-pipeline.yml"
    spec.write_text("name: p\nstorage: s\nlibraries: [{glob: {include: sql/**}}]\n")
    for path in (spec, tmp_path / "sql" / "a.sql"):
        told = api.lint(str(path))
        assert {one.rule for one in told} <= {"flow-of-another-kind"}
        assert [one.what.split()[0] for one in told] == found
    assert api.lint(str(tmp_path / "sql")) == ()  # whose SQL it is, the specification says
