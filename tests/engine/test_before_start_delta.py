"""A Delta source whose table has moved on, judged before Spark fails on it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import floodmark
from carried import GO
from floodmark.connectors.delta.table_log import table_id
from floodmark.engine.pipelines.start_positions import parse_start, read_start
from floodmark.engine.spark.hadoop import checkpoint_files
from floodmark.engine.start.launch import start
from floodmark.errors import Refused

pytestmark = pytest.mark.spark


@pytest.fixture
def table(spark: Any, tmp_path: Path) -> Path:
    path = tmp_path / "table"
    for version in range(3):
        add(spark, path, version)
    return path


def add(spark: Any, path: Path, value: int) -> None:
    spark.range(value, value + 1).coalesce(1).write.format("delta").mode("append").save(str(path))


def run(spark: Any, table: Path, checkpoint: Path) -> Any:
    query = start(writer(spark, table), checkpoint)
    assert query.awaitTermination(300)
    assert query.exception() is None
    return query


def writer(spark: Any, table: Path) -> Any:
    rows = spark.readStream.format("delta").option("maxFilesPerTrigger", 1).load(str(table))
    return rows.writeStream.format("noop").trigger(availableNow=True)


def test_a_table_as_it_was_goes_on(spark: Any, table: Path, tmp_path: Path) -> None:
    first = run(spark, table, tmp_path / "ck")
    add(spark, table, 9)
    assert run(spark, table, tmp_path / "ck").id == first.id


def test_what_is_gone_is_named(spark: Any, table: Path, tmp_path: Path) -> None:
    checkpoint = tmp_path / "ck"
    run(spark, table, checkpoint)
    add(spark, table, 9)  # version 3, not read yet
    log = table / "_delta_log"
    action = [json.loads(line) for line in (log / f"{3:020d}.json").read_text().splitlines()]
    added = next(line["add"]["path"] for line in action if "add" in line)

    (table / added).rename(tmp_path / "vacuumed")
    with pytest.raises(Refused, match=f"reads next is gone: {added}") as file:
        start(writer(spark, table), checkpoint)
    assert "--allow delta-file-gone" in file.value.do
    (tmp_path / "vacuumed").rename(table / added)

    # Retention removes commits once a checkpoint of the log, every ten versions, holds them.
    for value in range(10, 18):
        add(spark, table, value)
    for version in range(10):
        (log / f"{version:020d}.json").unlink()
    with pytest.raises(Refused, match=r"goes on in version 3, but the log of .* begins at 10"):
        start(writer(spark, table), checkpoint)


def test_another_table_in_the_place_name(spark: Any, table: Path, tmp_path: Path) -> None:
    run(spark, table, tmp_path / "ck")
    shutil.rmtree(table)
    for version in range(4):
        add(spark, table, version)
    with pytest.raises(Refused, match=r"is another table .* the stream has read") as error:
        start(writer(spark, table), tmp_path / "ck")
    assert "--allow delta-table-replaced" in error.value.do


def test_the_tables_id_is_found_in_a_checkpoint_of_the_log(
    spark: Any, table: Path, tmp_path: Path
) -> None:
    files = checkpoint_files(spark, str(table))
    from_commit = table_id(files)
    for version in range(3, 12):  # Delta writes a checkpoint every ten commits
        add(spark, table, version)
    log = table / "_delta_log"
    assert list(log.glob("*.checkpoint*.parquet"))
    (log / f"{0:020d}.json").unlink()
    assert table_id(files) == from_commit


def test_the_start_that_an_upgrade_hands_over_begins_at_its_version(
    spark: Any, table: Path, tmp_path: Path
) -> None:
    given = parse_start(b'{"startingVersion": 1, "index": -1}')
    rows = spark.readStream.format("delta").options(**given.delta(str(table))).load(str(table))
    sink = rows.writeStream.format("parquet").option("path", str(tmp_path / "sink"))
    query = start(sink.trigger(availableNow=True), tmp_path / "ck")
    assert query.awaitTermination(300)
    assert sorted(row.id for row in spark.read.parquet(str(tmp_path / "sink")).collect()) == [1, 2]


def test_a_place_that_was_handed_over_and_is_not_taken(
    spark: Any, table: Path, tmp_path: Path
) -> None:
    plain = writer(spark, table).option("checkpointLocation", str(tmp_path / "ck")).start()
    assert plain.awaitTermination(300)
    new = tmp_path / "new"
    floodmark.upgrade(str(tmp_path / "ck"), str(new), without_state=True, carrying=GO)
    with pytest.raises(Refused, match="a Delta source goes on at version 3") as error:
        start(writer(spark, table), new)
    assert "--allow start-place-not-taken" in error.value.do
    given = read_start(new / "_floodmark/start.json").delta()
    add(spark, table, 9)
    rows = spark.readStream.format("delta").options(**given).load(str(table))
    sink = rows.writeStream.format("parquet").option("path", str(tmp_path / "sink"))
    query = start(sink.trigger(availableNow=True), new)
    assert query.awaitTermination(300)
    assert [row.id for row in spark.read.parquet(str(tmp_path / "sink")).collect()] == [9]
