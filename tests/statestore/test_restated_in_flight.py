"""A batch that was planned, and maybe done, when the state was written anew.

It is carried as planned. Where the sink has it already, it does not compute it again: then
what the batch left of its state must be there. With unique ids Spark cannot do without
computing it, on its own checkpoint as well.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from floodmark import api
from floodmark.changes.apply import Carrying
from floodmark.statestore.open import open_state
from floodmark.storage.files import open_files
from floodmark.storage.load import load

from restated import FIRST_FILES, kept, run, run_first_half, write_input  # isort: skip
from spark_states import FORMAT  # isort: skip

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
GO = Carrying(True, 0)
# Spark 4.2 wants foreachBatch to compute every batch; a sink of its own may skip it unseen.
SKIPS = {"spark.sql.streaming.stateStore.commitValidation.enabled": "false"}
Made = Callable[[str, str], Any]

CASES: dict[str, tuple[str, Made, dict[str, str]]] = {
    "checksums, to 3 partitions": (
        "aggregate-checksum",
        lambda old, new: api.repartition(old, new, partitions=3, carrying=GO),
        {},
    ),
    "checksums in RocksDB, to HDFS": (
        "aggregate-checksum-rocksdb",
        lambda old, new: api.convert(old, new, provider="hdfs", carrying=GO),
        {},
    ),
    "removals, to RocksDB": (
        "session-hdfs",
        lambda old, new: api.convert(old, new, provider="rocksdb", carrying=GO),
        {},
    ),
    "column families, to 3 partitions": (
        "join-format3",
        lambda old, new: api.repartition(old, new, partitions=3, carrying=GO),
        {},
    ),
    "unique ids, to 3 partitions": (
        "aggregate-unique-ids",
        lambda old, new: api.repartition(old, new, partitions=3, carrying=GO),
        {},
    ),
    "from unique ids": (
        "aggregate-unique-ids",
        lambda old, new: api.convert(old, new, provider="rocksdb", state_format=1, carrying=GO),
        {FORMAT: "1"},
    ),
}


QUICK = ("checksums, to 3 partitions", "unique ids, to 3 partitions")


@pytest.mark.parametrize(
    "case",
    [pytest.param(case, marks=() if case in QUICK else pytest.mark.soak) for case in CASES],
)
def test_the_batch_in_flight_is_done_once_more_or_skipped(
    spark: SparkSession, tmp_path: Path, case: str
) -> None:
    from pyspark.errors import StreamingQueryException

    name, make, conf = CASES[case]
    run_first_half(spark, tmp_path, name)
    source, old = tmp_path / "input" / name, tmp_path / name
    last = FIRST_FILES - 1
    for file in (f"{last}", f".{last}.crc"):
        (old / "commits" / file).unlink()
    places = {}
    for sink, has in (("again", None), ("has it", last)):
        new, own = tmp_path / f"new {sink}", tmp_path / f"own {sink}"
        assert make(str(old), str(new)).executed
        assert api.inspect(str(new)).in_flight_batch == last
        shutil.copytree(old, own)
        places[sink] = new, own, has
    write_input(source, FIRST_FILES)
    for sink, (new, own, has) in places.items():
        outs = tmp_path / f"out new {sink}", tmp_path / f"out own {sink}"
        if has is not None and "unique ids" in case:
            with pytest.raises(StreamingQueryException, match="CheckpointInfo length"):
                run(spark, name, source, own, outs[1], SKIPS, has, availableNow=True)
            continue
        run(spark, name, source, own, outs[1], SKIPS, has, availableNow=True)
        run(spark, name, source, new, outs[0], {**conf, **SKIPS}, has, availableNow=True)
        assert len(kept(outs[1])) >= 1
        assert kept(outs[0]) == kept(outs[1]), sink


@pytest.mark.parametrize("ask", [{"partitions": 3}, {"provider": "rocksdb"}], ids=["moved", "kept"])
def test_executors_carry_what_one_process_does(
    spark: SparkSession, tmp_path: Path, ask: dict[str, Any]
) -> None:
    golden = Path(__file__).parents[1] / "golden" / "4.2" / "in-flight-state" / "checkpoint"
    old = str(shutil.copytree(golden, tmp_path / "old"))
    in_flight = api.inspect(old).in_flight_batch
    verb = api.repartition if "partitions" in ask else api.convert
    found = []
    for place, on_spark in (("here", False), ("there", True)):
        new = tmp_path / place
        assert verb(old, str(new), carrying=GO, on_spark=on_spark, **ask).executed
        files = open_files(str(new))
        rows = open_state(files, load(files), 0, None, in_flight).rows()
        names = sorted(path.name for path in (new / "state").rglob(f"*{in_flight}.[dc]*"))
        found.append((sorted(map(repr, rows)), names))
    assert found[0] == found[1]
    assert found[0][0]
