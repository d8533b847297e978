"""State that Scala's operators keep, written anew: Spark goes on with it as with its own.

After the first half of the input the state is repartitioned or converted. What the same Scala
code makes of the second half, and the state that it leaves, must be what it makes of it on
Spark's own checkpoint.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from floodmark import api
from floodmark.changes.apply import Carrying
from floodmark.statestore.open import open_state
from floodmark.storage.files import open_files
from floodmark.storage.load import load

from restated import FIRST_FILES, kept, write_input  # isort: skip
from scala_code import compiled  # isort: skip
from spark_states import RDB, events, session_conf  # isort: skip

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.soak]
GO = Carrying(True, 0)
Build = Callable[[Any, "DataFrame"], Any]
CODES: dict[str, tuple[Build, dict[str, str], list[str]]] = {
    "groups of a case class, hdfs": (
        lambda code, events: code.Groups.memories(events, "ProcessingTime"),
        {},
        ["to 3 partitions", "to rocksdb"],
    ),
    "groups of a number under two columns, rocksdb": (
        lambda code, events: code.Groups.numbers(events, "NoTimeout"),
        RDB,
        ["to 3 partitions", "to hdfs", "to unique ids"],
    ),
    "transformWithState": (
        lambda code, events: code.Transforms.remember(events, 0, False),
        RDB,
        ["to 3 partitions", "to unique ids"],
    ),
    "transformWithState that expires": (
        lambda code, events: code.Transforms.remember(events, 3_600_000, False),
        RDB,
        ["to 3 partitions"],
    ),
}
FORMAT = "spark.sql.streaming.stateStore.checkpointFormatVersion"
CHANGES: dict[str, tuple[Callable[[str, str], Any], dict[str, str]]] = {
    "to 3 partitions": (
        lambda old, new: api.repartition(old, new, partitions=3, carrying=GO),
        {},
    ),
    "to rocksdb": (lambda old, new: api.convert(old, new, provider="rocksdb", carrying=GO), {}),
    "to hdfs": (lambda old, new: api.convert(old, new, provider="hdfs", carrying=GO), {}),
    "to unique ids": (
        lambda old, new: api.convert(old, new, provider="rocksdb", state_format=2, carrying=GO),
        {FORMAT: "2"},
    ),
}


@pytest.fixture(scope="module")
def code(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Any:
    source = Path(__file__).with_name("scala_states.scala")
    return compiled(spark, source, tmp_path_factory.mktemp("scala") / "classes")


def run(frame: DataFrame, checkpoint: Path, out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)

    def keep(rows: DataFrame, batch: int) -> None:
        found = sorted(str(row.asDict()) for row in rows.collect())
        (out / f"{batch}.json").write_text(json.dumps(found), encoding="utf-8")

    query = (
        frame.writeStream.foreachBatch(keep)
        .outputMode("update")
        .option("checkpointLocation", str(checkpoint))
        .trigger(once=True)  # with processing time, the other kind never ends
        .start()
    )
    query.awaitTermination()


def state(location: Path) -> dict[str, list[str]]:
    """Every row of every store that shows no time of its own."""
    files = open_files(str(location))
    checkpoint = load(files)
    found = {}
    for store in open_state(files, checkpoint).stores:
        rows = open_state(files, checkpoint, 0, store).rows()
        found[store] = sorted(
            json.dumps([r["key"], _untimed(r["value"])], default=str) for r in rows
        )
    return {name: rows for name, rows in found.items() if not name.startswith("$")}


def _untimed(value: Any) -> Any:
    """Without the times at which a row expires: they are of the run, and not of the rows."""
    if isinstance(value, dict):
        gone = ("ttlExpirationMs", "timeoutTimestamp")
        return {name: _untimed(one) for name, one in value.items() if name not in gone}
    return [_untimed(one) for one in value] if isinstance(value, list) else value


@pytest.mark.parametrize("name", CODES)
def test_scala_goes_on(spark: SparkSession, code: Any, name: str, tmp_path: Path) -> None:
    build, conf, changes = CODES[name]
    source, old = tmp_path / "input", tmp_path / "old"

    def go(checkpoint: Path, out: str, more: dict[str, str]) -> None:
        from pyspark.sql import DataFrame

        with session_conf(spark, {**conf, **more}):
            frame = build(code, events(spark, source)._jdf)
            run(DataFrame(frame, spark), checkpoint, tmp_path / out)

    for number in range(FIRST_FILES):
        write_input(source, number)
        go(old, "first", {})
    made = {}
    for how in changes:
        made[how] = tmp_path / how.replace(" ", "-")
        assert CHANGES[how][0](str(old), str(made[how])).executed
        assert state(made[how]) == state(old)
        assert any(state(old).values())
    write_input(source, FIRST_FILES)
    go(old, "own", {})
    for how, new in made.items():
        go(new, how, CHANGES[how][1])
        assert kept(tmp_path / how) == kept(tmp_path / "own"), how
        assert state(new) == state(old), how
    assert any(kept(tmp_path / "own").values())
