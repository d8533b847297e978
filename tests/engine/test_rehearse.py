"""A rehearsal reads little, keeps nothing and leaves everything as it was."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from streams import put_orders, read_orders

from floodmark.engine.code.query import read_query, source_folders
from floodmark.engine.code.rehearse import capped, rehearse, require_one_machine
from floodmark.errors import WrongUse
from floodmark.storage.files import open_files
from floodmark.storage.load import load

pytestmark = pytest.mark.spark


def test_sources_are_capped_and_do_not_tidy_up(spark: Any, tmp_path: Path) -> None:
    def options() -> Any:
        reader = spark.readStream.schema("id long").option("cleanSource", "delete")
        frame = reader.option("maxFilesPerTrigger", 50).json(str(tmp_path))
        return read_query(frame.writeStream.format("noop")).sources[0].options

    with capped(7):
        limited = options()
    assert limited["cleansource"] == "off"
    assert (limited["maxfilespertrigger"], limited["maxoffsetspertrigger"]) == ("1", "7")
    with capped(0):
        unlimited = options()
    assert (unlimited["cleansource"], unlimited["maxfilespertrigger"]) == ("off", "50")
    assert options()["cleansource"] == "delete"  # nothing stays behind


def test_a_fork_does_not_reach_other_machines() -> None:
    spark = SimpleNamespace(sparkContext=SimpleNamespace(master="yarn"))
    with pytest.raises(WrongUse, match="the master is yarn"):
        require_one_machine(spark)


def test_where_nothing_is_new_the_state_is_rehearsed_all_the_same(
    spark: Any, tmp_path: Path
) -> None:
    session = spark.newSession()
    put_orders(tmp_path / "orders", "a", ("c1", "1.00"))

    def writer(*keys: str) -> Any:
        rows = read_orders(session, tmp_path / "orders").groupBy(*keys).count()
        return rows.writeStream.outputMode("update").format("noop").trigger(availableNow=True)

    checkpoint = str(tmp_path / "ck")
    query = writer("customerId").option("checkpointLocation", checkpoint).start()
    assert query.awaitTermination(300)
    files = open_files(checkpoint)
    loaded = load(files)
    same = rehearse(writer("customerId"), files, loaded)
    assert (same.ran, same.batch, same.rows, same.real_sources) == (True, 1, 0, True)
    other = rehearse(writer("customerId", "amountPaid"), files, loaded, empty=True)
    assert not other.ran
    assert other.condition == "STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE"
    assert not other.real_sources
    assert load(files) == loaded


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({"maxBytesPerTrigger": "10g"}, {"maxbytespertrigger": "1", "maxfilespertrigger": None}),
        (
            {"minOffsetsPerTrigger": "5000"},
            {"minoffsetspertrigger": "1", "maxfilespertrigger": "1"},
        ),
        ({"MAXFILESPERTRIGGER": "50"}, {"maxfilespertrigger": "1", "minoffsetspertrigger": None}),
    ],
    ids=["bytes", "least", "any case"],
)
def test_limits_of_the_code_give_way(
    spark: Any, tmp_path: Path, given: dict[str, str], wanted: dict[str, str | None]
) -> None:
    """Spark refuses limits that exclude each other, whoever set them."""
    reader = spark.readStream.schema("id long")
    with capped(7):
        frames = [
            reader.options(**given).json(str(tmp_path)),
            spark.readStream.load(str(tmp_path), "json", "id long", **given),
        ]
    for frame in frames:
        found = read_query(frame.writeStream.format("noop")).sources[0].options
        assert {key: found.get(key) for key in wanted} == wanted


def test_a_source_that_is_read_twice_has_one_folder(spark: Any, tmp_path: Path) -> None:
    put_orders(tmp_path / "a", "a", ("c1", "1.00"))
    put_orders(tmp_path / "b", "b", ("c2", "1.00"))
    twice, other = (read_orders(spark, tmp_path / name) for name in ("a", "b"))
    writer = twice.union(twice).union(other).writeStream.format("noop").trigger(availableNow=True)
    assert source_folders(writer) == ("0", "0", "1")
    query = writer.option("checkpointLocation", str(tmp_path / "ck")).start()
    assert query.awaitTermination(300)
    assert sorted(path.name for path in (tmp_path / "ck" / "sources").iterdir()) == ["0", "1"]
