"""A drill begins with copies of the pipeline's checkpoint and sinks, which stay as they are."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from drill.drilled import Drilled, sample
from floodmark import api, inspect
from floodmark.cli.drill import text
from floodmark.engine.drill.beginning import DEEDS, Beginning, Copies
from floodmark.engine.drill.run_spec import RunSpec
from floodmark.errors import NoAnswer

GOLDEN = Path(__file__).parents[1] / "golden" / "4.2"


def spec_in(base: Path, name: str = "run", carry_on: bool = True) -> RunSpec:
    (base / "shared").mkdir(exist_ok=True)
    (base / name).mkdir()
    return RunSpec("a.py", str(base / name), str(base / "shared"), (), carry_on=carry_on)


def here(name: str, *given: Any) -> Any:
    return DEEDS[name](*given)


def hashes(base: Path) -> dict[str, str]:
    return {
        str(one): hashlib.sha256(one.read_bytes()).hexdigest()
        for one in sorted(base.rglob("*"))
        if one.is_file()
    }


@pytest.mark.parametrize("name", ["sales-hdfs", "sales-rocksdb", "in-flight-state", "offsets-v2"])
def test_the_copy_keeps_state_and_batches_and_no_offsets(name: str, tmp_path: Path) -> None:
    real = tmp_path / "real"
    shutil.copytree(GOLDEN / name / "checkpoint", real)
    before, told = hashes(real), inspect(str(real))

    found = Copies(str(real), spec_in(tmp_path), here).beginning

    assert told.committed_batch is not None
    assert told.latest_batch is not None
    assert (found.batch, found.first) == (told.committed_batch, told.latest_batch + 1)
    copy = tmp_path / "run" / "checkpoint"
    now = inspect(str(copy))
    assert (now.query_id, now.committed_batch) == (told.query_id, told.committed_batch)
    assert all(source.offset is None for source in now.sources)
    assert not any(one.is_file() for one in copy.glob("sources/**/*"))
    assert hashes(real) == before
    state = [one for one in copy.glob("state/0/[0-9]*/*") if one.is_file()]
    assert state or name == "offsets-v2", "which has none"
    for one in state:
        assert one.samefile(real / one.relative_to(copy)), "linked, not copied"


def test_every_run_begins_with_the_copy_of_the_first(tmp_path: Path) -> None:
    real = tmp_path / "real"
    shutil.copytree(GOLDEN / "sales-hdfs" / "checkpoint", real)
    first = Copies(str(real), spec_in(tmp_path), here).beginning
    shutil.rmtree(real)
    second = Copies(str(real), spec_in(tmp_path, "again"), here)
    assert second.beginning == first
    assert inspect(str(tmp_path / "again" / "checkpoint")).committed_batch == first.batch


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (None, "names no checkpoint"),
        ("nowhere", "there is no checkpoint at"),
        ("in-flight-first", "has no finished batch"),
    ],
)
def test_why_a_drill_begins_with_a_new_checkpoint(
    name: str | None, words: str, tmp_path: Path
) -> None:
    real = None if name is None else str(tmp_path / name)
    if name is not None and (GOLDEN / name).exists():
        shutil.copytree(GOLDEN / name / "checkpoint", tmp_path / name)
    found = Copies(real, spec_in(tmp_path), here).beginning
    assert (found.checkpoint, found.first) == (None, 0)
    assert words in found.why


def test_fresh_copies_nothing(tmp_path: Path) -> None:
    found = Copies(
        str(GOLDEN / "sales-hdfs" / "checkpoint"), spec_in(tmp_path, carry_on=False), here
    )
    assert found.beginning == Beginning(None, None, 0, "as --fresh asks")
    sink = tmp_path / "sink"
    sink.mkdir()
    assert not found.bring(str(sink), tmp_path / "run" / "own")
    assert not list((tmp_path / "run").iterdir())


def test_sinks_are_linked_and_a_large_one_begins_empty(tmp_path: Path) -> None:
    real, sink, large = tmp_path / "real", tmp_path / "sink", tmp_path / "large"
    shutil.copytree(GOLDEN / "sales-hdfs" / "checkpoint", real)
    for one in (sink / "_delta_log" / "0.json", sink / "k=1" / "a.parquet", large / "a.parquet"):
        one.parent.mkdir(parents=True, exist_ok=True)
        one.write_text("rows")
    os.truncate(large / "a.parquet", 65 * 1024 * 1024)
    copies = Copies(str(real), spec_in(tmp_path), here)
    own = tmp_path / "run" / "sinks" / "sink-1"
    assert copies.bring(f"file://{sink}", own)
    assert (own / "k=1" / "a.parquet").samefile(sink / "k=1" / "a.parquet")
    (own / "more.parquet").write_text("of the run")
    assert copies.bring(str(sink), own), "the run's own rows stay"
    assert (own / "more.parquet").exists()
    assert not copies.bring(str(large), tmp_path / "run" / "sinks" / "large-1")
    assert not copies.bring("s3://bucket/sink", tmp_path / "run" / "sinks" / "s3-1")
    assert not copies.bring(str(tmp_path / "none"), tmp_path / "run" / "sinks" / "none-1")


def test_a_file_sinks_copy_lists_the_copys_files(tmp_path: Path) -> None:
    """Spark finds no file in a folder whose log names the files of another folder."""
    real, sink = tmp_path / "real", tmp_path / "sink"
    shutil.copytree(GOLDEN / "sales-hdfs" / "checkpoint", real)
    log = sink / "_spark_metadata"
    log.mkdir(parents=True)
    (sink / "part-0.parquet").write_text("rows")
    entry = {"path": f"file://{sink}/part-0.parquet", "size": 4, "isDir": False, "action": "add"}
    (log / "0").write_text("v1\n" + json.dumps({**entry, "modificationTime": 1}))
    (log / ".0.crc").write_bytes(b"of the original")
    before = hashes(sink)
    copies = Copies(str(real), spec_in(tmp_path), here)
    own = tmp_path / "run" / "sinks" / "sink-1"
    assert copies.bring(str(sink), own)
    for copy in (own, copies.original(own)):
        _, line = (copy / "_spark_metadata" / "0").read_text().splitlines()
        assert json.loads(line)["path"] == f"file://{copy}/part-0.parquet"
        assert not (copy / "_spark_metadata" / ".0.crc").exists()
    assert hashes(sink) == before


def test_a_pipeline_that_runs_meanwhile_is_said(tmp_path: Path) -> None:
    real, sink = tmp_path / "real", tmp_path / "sink"
    shutil.copytree(GOLDEN / "sales-hdfs" / "checkpoint", real)
    sink.mkdir()
    copies = Copies(str(real), spec_in(tmp_path), here)
    latest = inspect(str(real)).latest_batch
    assert latest is not None
    shutil.copy(real / "offsets" / str(latest), real / "offsets" / str(latest + 1))
    with pytest.raises(NoAnswer, match="changes while the drill copies it") as raised:
        copies.bring(str(sink), tmp_path / "run" / "own")
    assert "--fresh" in raised.value.do


RUNNING = Drilled(
    """
def write(batch, batch_id):
    batch.write.format("delta").mode("append").save("BASE/out")

totals = rows.groupBy("k").agg(F.sum("v").alias("total"))
writer = totals.writeStream.outputMode("update").foreachBatch(write)
""",
    source="rows = spark.readStream.schema('id BIGINT, k STRING, v BIGINT')"
    ".option('maxFilesPerTrigger', 1).json('BASE/in')",
)


@pytest.mark.spark
@pytest.mark.timeout(900)
def test_a_drill_goes_on_from_a_copy_of_what_is_there(tmp_path: Path) -> None:
    """Sums go on from the real state; a batch in flight, which the sink has, is left out."""
    base = tmp_path / "user"
    app = RUNNING.write(base)
    (base / "in").mkdir()
    for number in range(2):
        row = {"id": number, "k": f"k{number}", "v": 1000}
        (base / "in" / f"{number}.json").write_text(json.dumps(row))
        os.utime(base / "in" / f"{number}.json", (1_700_000_000 + number,) * 2)
    floodmark = [sys.executable, "-m", "floodmark"]
    run = [
        *floodmark,
        "run",
        str(app),
        "--available-now",
        "--conf",
        "spark.sql.shuffle.partitions=2",
    ]
    subprocess.run(run, check=True, timeout=300, cwd=tmp_path)
    (base / "ck" / "commits" / "1").unlink()
    (base / "ck" / "commits" / ".1.crc").unlink(missing_ok=True)
    rows, before = sample(base), hashes(base)

    found = api.drill(str(app), input=str(rows), point="after-sink")

    assert hashes(base) == before, "the real checkpoint and sink are as they were"
    assert (found.begins_after, found.copied_checkpoint) == (0, str(base / "ck"))
    (sink,) = found.sinks
    assert sink.copied
    assert f"began with a copy of {base}/ck, after batch 0." in text(found)
    (result,) = found.points
    assert (result.batch, result.survived, result.lost, result.wrong) == (3, False, 0, 0)
    # The sample's second batch has the rows 3, 4, 5; k0 had 1000 in batch 0, and k1 in the batch
    # in flight, which is not in the state yet.
    again = {row["k"]: row["total"] for row in result.sinks[sink.place].repeated_rows}
    assert again == {"k0": 1000 + 0 + 3, "k1": 1 + 4, "k2": 2 + 5}
