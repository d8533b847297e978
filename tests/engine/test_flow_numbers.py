"""Changes of a flow's checkpoint that the pipeline's own runner takes up with its next run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from test_declarative import CHECKPOINTS, OLD, define, in_its_folder, put

pytestmark = [pytest.mark.spark, pytest.mark.soak, pytest.mark.timeout(1200)]
HIVE = ("--conf", "spark.sql.catalogImplementation=hive")


def floodmark(place: Path, *words: object) -> str:
    done = in_its_folder(place, *words)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


def totals(place: Path) -> list[tuple[str, int]]:
    """What Spark reads of the table: the files that the sink's log has."""
    import pyarrow.parquet as parquet

    folder = place / "code" / "spark-warehouse" / "totals"
    entries = [one for one in (folder / "_spark_metadata").iterdir() if one.name[0] != "."]
    lines = [line for one in entries for line in one.read_text().splitlines()[1:]]
    names = {Path(json.loads(line)["path"]).name for line in lines}
    rows = [row for name in names for row in parquet.read_table(folder / name).to_pylist()]
    return sorted((row["customer"], row["total"]) for row in rows)


def test_the_runner_takes_up_what_was_spread_repaired_and_rewound(tmp_path: Path) -> None:
    spec, flow = define(tmp_path, "code", OLD), tmp_path / CHECKPOINTS
    put(tmp_path, 1, ("a", 1, "06:01"), ("b", 2, "06:02"), ("a", 3, "06:20"))
    floodmark(tmp_path, "run", spec, *HIVE)
    assert totals(tmp_path) == [("a", 1), ("b", 2)]
    floodmark(tmp_path, "repartition", flow / "0", "--partitions", 3, "--execute")
    put(tmp_path, 2, ("a", 10, "06:21"), ("c", 5, "06:40"), ("c", 1, "06:55"))
    floodmark(tmp_path, "run", spec, *HIVE)
    assert totals(tmp_path) == [("a", 1), ("a", 13), ("b", 2), ("c", 5)]
    # A crash in mid-write leaves an empty entry, on which Spark does not start.
    newest = max(int(one.name) for one in (flow / "1" / "offsets").glob("[0-9]*"))
    (flow / "1" / "offsets" / str(newest + 1)).write_bytes(b"")
    floodmark(tmp_path, "repair", flow / "1", "--execute", "--accept", "maybe-running")
    assert (flow / "2" / "offsets").is_dir()
    put(tmp_path, 3, ("d", 7, "07:30"), ("d", 1, "08:00"))
    floodmark(tmp_path, "run", spec, *HIVE)
    before = totals(tmp_path)
    assert before == [("a", 1), ("a", 13), ("b", 2), ("c", 1), ("c", 5), ("d", 7)]
    # Back to before the third file, with the output's log: the same rows come again.
    sink = tmp_path / "code" / "spark-warehouse" / "totals"
    asked = ("--to-batch", newest, "--sink", sink, "--accept", "maybe-running", "--execute")
    floodmark(tmp_path, "rewind", flow / "2", *asked)
    assert (flow / "3" / "offsets").is_dir()
    floodmark(tmp_path, "run", spec, *HIVE)
    assert totals(tmp_path) == before
