"""No judging verb touches checkpoint, sink, tables or files, however a script is written."""

from __future__ import annotations

import json
import logging
import os
import threading
from pathlib import Path
from typing import Any

import pytest
from script_shapes import BESIDE, DATABRICKS, NOTEBOOK_CELLS, SHAPES

from floodmark.engine.app.options import ScriptOptions
from floodmark.engine.code.query import read_query
from floodmark.engine.pipelines.building import built

pytestmark = pytest.mark.spark


class Place:
    """A checkpoint that a real query has made, its input, its sink, and a table."""

    def __init__(self, root: Path, spark: Any) -> None:
        self.root, self.spark = root, spark
        self.input, self.output, self.checkpoint = root / "in", root / "out", root / "cks" / "ck"
        self.input.mkdir(parents=True)
        (self.input / "1.json").write_text('{"customer": "c1", "amount": 1}\n')
        orders = spark.readStream.schema("customer string, amount long").json(str(self.input))
        writer = orders.groupBy("customer").sum("amount").writeStream.outputMode("update")
        query = writer.format("noop").option("checkpointLocation", str(self.checkpoint))
        assert query.trigger(availableNow=True).start().awaitTermination(300)
        rows = spark.createDataFrame([("c1", 1)], "customer string, amount long")
        rows.write.parquet(str(self.output))
        rows.write.format("delta").save(str(root / "delta"))

    def script(self, text: str, name: str = "orders.py") -> Path:
        words = {"IN": "in", "OUT": "out", "CK": "cks/ck", "HERE": ".", "DELTA": "delta"}
        words |= {"ROOT": "cks"}
        for word, path in words.items():
            text = text.replace(f'"{word}', f'"{self.root}/{path}')
            text = text.replace(f"'{word}", f"'{self.root}/{path}")
            text = text.replace(f"`{word}", f"`{self.root}/{path}").replace(
                f" {word}/", f" {self.root}/{path}/"
            )
        path = self.root / "app" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text.replace("TABLE", "shapes_table").replace("rm -rf CK", "rm -rf x"))
        (path.parent / "beside_shapes.py").write_text(BESIDE)
        return path

    def everything(self) -> dict[str, tuple[int, int, bytes]]:
        found = {}
        for folder in (self.root, self.warehouse):
            for path in sorted(folder.rglob("*")):
                stat = path.stat()
                data = path.read_bytes() if path.is_file() else b""
                found[str(path)] = (stat.st_mtime_ns, stat.st_mode, data)
        return found

    @property
    def warehouse(self) -> Path:
        place = str(self.spark.conf.get("spark.sql.warehouse.dir"))
        return Path(place.removeprefix("file:"))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, spark: Any) -> Place:
    return Place(tmp_path_factory.mktemp("shapes"), spark)


def judge(place: Place, script: Path, *arguments: str) -> Any:
    """What the verbs judge; and nothing of all is other than before."""
    before, folder = place.everything(), Path.cwd()
    tables = {one.name for one in place.spark.catalog.listTables()}
    confs = dict(place.spark.sparkContext.getConf().getAll())
    zone = place.spark.conf.get("spark.sql.session.timeZone")
    with built(
        str(script),
        checkpoints=(str(place.checkpoint),),
        script=ScriptOptions(arguments, limit_seconds=30),
    ) as found:
        query = read_query(found.writer)
    assert place.everything() == before
    assert place.spark.streams.active == []
    assert {one.name for one in place.spark.catalog.listTables()} == tables
    assert not place.spark.catalog.databaseExists("db_shapes_table")
    assert dict(place.spark.sparkContext.getConf().getAll()) == confs
    assert place.spark.conf.get("spark.sql.session.timeZone") == zone
    assert Path.cwd() == folder
    return query


@pytest.mark.parametrize("shape", SHAPES)
def test_nothing_starts_and_nothing_is_touched(place: Place, shape: str) -> None:
    query = judge(place, place.script(SHAPES[shape]))
    assert [source.kind for source in query.sources] == ["json"]
    assert query.schema_json.startswith('{"type":"struct"')


def test_a_log_of_the_script_is_not_written_to_later_either(place: Place) -> None:
    before = list(logging.root.handlers), logging.root.level
    judge(place, place.script(SHAPES["a log of its own"]))
    assert (logging.root.handlers, logging.root.level) == before
    assert logging.getLogger("orders").handlers == []
    logging.getLogger("orders").warning("after its end")
    assert not (place.root / "orders.log").exists()


def test_a_thread_that_wakes_after_the_end_starts_nothing(place: Place) -> None:
    before = place.everything()
    judge(place, place.script(SHAPES["leaves a thread behind"]))
    left = [one for one in threading.enumerate() if hasattr(one, "_floodmark_watch")]
    for one in left:
        one.join(300)
    assert place.spark.streams.active == []
    after = place.everything()
    script = str(place.root / "app" / "orders.py")
    before.pop(script, None)
    after.pop(script, None)
    assert {name for name in after if name not in before} == set()
    assert not any(one.is_alive() for one in left)


def test_notebooks_of_databricks(place: Place) -> None:
    query = judge(place, place.script(DATABRICKS))
    assert query.sources[0].path == str(place.input)
    other = place.root / "other"
    other.mkdir(exist_ok=True)
    assert judge(place, place.script(DATABRICKS), f"place={other}").sources[0].path == str(other)


def test_notebooks_of_jupyter(place: Place) -> None:
    cells = [{"cell_type": "code", "source": source} for source in NOTEBOOK_CELLS]
    cells.insert(0, {"cell_type": "markdown", "source": ["# Orders"]})
    text = json.dumps({"cells": cells}, indent=1)
    path = place.script("", "orders.ipynb")
    for word, folder in (("IN", place.input), ("CK", place.checkpoint)):
        text = text.replace(f'\\"{word}\\"', f'\\"{folder}\\"')
    path.write_text(text)
    assert judge(place, path).sources[0].path == str(place.input)


def test_environment_and_arguments_are_the_scripts_own(place: Place) -> None:
    text = """
import os, sys
os.environ["FLOODMARK_TEST_LEFT"] = "1"
os.chdir("/")
assert sys.argv == [sys.argv[0], "--day", "2026-11-16"], sys.argv
""" + SHAPES["plain"]
    judge(place, place.script(text), "--day", "2026-11-16")
    assert "FLOODMARK_TEST_LEFT" not in os.environ
