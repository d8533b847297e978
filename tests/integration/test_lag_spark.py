"""What `lag` says waits is what Spark reads next: of Delta tables and of folders."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import floodmark
from floodmark.connectors.behind import SourceLag

pytestmark = pytest.mark.spark


def read_on(reader: Any, checkpoint: Path) -> int:
    """Runs the stream to its end; the rows that it read."""
    writer = reader.writeStream.format("noop").option("checkpointLocation", str(checkpoint))
    query = writer.trigger(availableNow=True).start()
    try:
        assert query.awaitTermination(300)
    finally:
        query.stop()
    return sum(int(one["numInputRows"]) for one in query.recentProgress)


def forget_after_first(checkpoint: Path) -> None:
    """As if the query had been stopped after batch 0."""
    for log in ("offsets", "commits"):
        for path in (checkpoint / log).iterdir():
            if path.name not in ("0", ".0.crc"):
                path.unlink()


def behind(checkpoint: Path, **places: str) -> SourceLag:
    [source] = floodmark.lag(str(checkpoint), **places).sources
    assert source.error is None, source.error
    return source


def append(spark: Any, table: Path, first: int, rows: int, files: int = 1) -> None:
    frame = spark.range(first, first + rows, 1, files)
    frame.write.format("delta").mode("append").save(str(table))


def test_rows_and_files_of_a_delta_table(spark: Any, tmp_path: Path) -> None:
    table, checkpoint = tmp_path / "table", tmp_path / "cp"
    append(spark, table, 0, 30, files=3)
    reader = spark.readStream.format("delta").option("maxFilesPerTrigger", 1).load(str(table))
    assert read_on(reader, checkpoint) == 30
    done = behind(checkpoint, table=str(table)).behind
    assert (done.records, done.files, done.bytes, done.versions) == (0, 0, 0, 0)
    forget_after_first(checkpoint)  # inside the table's first snapshot, two of its files left
    append(spark, table, 30, 12, files=4)
    there = {path.name for path in table.glob("*.parquet")}
    spark.sql(f"OPTIMIZE delta.`{table}`").collect()  # rewrites files, and adds no row
    rewritten = {path.name for path in table.glob("*.parquet")} - there
    append(spark, table, 42, 3)
    source = behind(checkpoint, table=str(table))
    assert (source.behind.records, source.behind.files) == (20 + 12 + 3, 2 + 4 + 1)
    sizes = {path.name: path.stat().st_size for path in table.glob("*.parquet")}
    written = sum(size for name, size in sizes.items() if name not in rewritten)
    assert written - max(sizes.values()) <= (source.behind.bytes or 0) < written
    assert source.lost == 0
    assert read_on(reader, checkpoint) == source.behind.records


def test_files_of_a_folder(spark: Any, tmp_path: Path) -> None:
    folder, checkpoint = tmp_path / "in put", tmp_path / "cp"

    def put(name: str) -> None:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f'{{"v": "{name}"}}\n')  # a row a file

    for name in ("day=1/a.json", "day=1/b.json", "day=2/c.json"):
        put(name)
    reader = spark.readStream.schema("v STRING").option("maxFilesPerTrigger", 2).json(str(folder))
    assert read_on(reader, checkpoint) == 3
    assert behind(checkpoint).behind.files == 0
    forget_after_first(checkpoint)  # the third file is in the source's list, and not read
    for name in ("day=2/d é.json", "day=3/e.json", "day=3/_hidden.json", "day=3/.dot.json"):
        put(name)
    # The folders of files that it has listed do not tell of day=3: its place has to be said.
    assert behind(checkpoint).behind.files == 2
    source = behind(checkpoint, input=str(folder))
    assert source.behind.files == 3
    assert read_on(reader, checkpoint) == 3
    assert behind(checkpoint, input=str(folder)).behind.files == 0
