"""What new code is, drawn without its data: sources as declared, state as Spark would keep it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions
from streams import put_orders, read_orders

from floodmark.checkpoint.plan.words import words
from floodmark.engine.code.outline import outline
from floodmark.engine.pipelines.building import built
from floodmark.errors import CannotOutline, WrongUse

pytestmark = pytest.mark.spark


def totals(session: Any, orders: Path) -> Any:
    rows = read_orders(session, orders).groupBy("customerId")
    return rows.agg(functions.sum("amountPaid").alias("total"), functions.count("*"))


def names(schema_json: str) -> list[str]:
    return [field["name"] for field in json.loads(schema_json)["fields"]]


def test_state_is_drawn_and_no_row_is_read(session: Any, tmp_path: Path) -> None:
    put_orders(tmp_path / "orders", "a", ("c1", "1.00"))
    seen: list[int] = []
    writer = totals(session, tmp_path / "orders").writeStream.outputMode("complete")
    drawn = outline(
        writer.foreachBatch(lambda batch, number: seen.append(number)), folder=tmp_path / "drawn"
    )
    assert seen == []
    assert (drawn.sink, drawn.output_mode) == ("foreachBatch", "Complete")
    assert [(source.kind, source.place) for source in drawn.sources] == [
        ("csv", str(tmp_path / "orders"))
    ]
    (operator,) = drawn.operators
    assert operator.name == "stateStoreSave"
    (family,) = operator.stores["default"]
    assert names(family.key_json) == ["customerId"]
    assert len(names(family.value_json)) == 3  # a sum of decimals keeps whether it is empty
    (aggregate,) = drawn.tree.steps("Aggregate")
    assert [words(one) for one in aggregate.role("keys")] == ["customerId"]
    # What `migrate` builds its target from stays where it was asked for.
    assert (tmp_path / "drawn/checkpoint/state/0/_metadata/metadata").is_file()


def test_a_pin_of_the_checkpoint_decides_the_format(session: Any, tmp_path: Path) -> None:
    (tmp_path / "orders").mkdir()
    writer = totals(session, tmp_path / "orders").writeStream.outputMode("update").format("noop")
    pin = {"spark.sql.streaming.aggregation.stateFormatVersion": "1"}
    (operator,) = outline(writer, pin).operators
    (family,) = operator.stores["default"]
    assert "customerId" in names(family.value_json)  # version 1 keeps the key beside the value
    assert session.conf.get("spark.sql.streaming.aggregation.stateFormatVersion") == "2"


def test_a_table_beside_the_stream_is_not_read(session: Any, tmp_path: Path) -> None:
    (tmp_path / "orders").mkdir()
    table = tmp_path / "customers"
    session.range(3).selectExpr("cast(id as string) AS customerId", "'x' AS land").write.parquet(
        str(table)
    )
    static = session.read.parquet(str(table))
    for file in table.glob("*.parquet"):
        file.unlink()  # reading it would fail now
    rows = read_orders(session, tmp_path / "orders").join(static, "customerId")
    writer = rows.groupBy("land").count().writeStream.outputMode("update").format("noop")
    (operator,) = outline(writer).operators
    assert names(operator.stores["default"][0].key_json) == ["land"]


def test_a_source_that_has_no_nulls_stays_so(session: Any) -> None:
    rows = session.readStream.format("rate").load().selectExpr("coalesce(value, 0) AS id")
    writer = rows.dropDuplicates(["id"]).writeStream.format("noop")
    (operator,) = outline(writer).operators
    field = json.loads(operator.stores["default"][0].key_json)["fields"][0]
    assert (field["name"], field["nullable"]) == ("id", False)


def test_kafka_need_not_be_reachable(session: Any) -> None:
    reader = session.readStream.format("kafka").option("subscribe", "orders")
    rows = reader.option("kafka.bootstrap.servers", "127.0.0.1:1").load()
    drawn = outline(rows.dropDuplicates(["topic", "offset"]).writeStream.format("noop"))
    assert [(one.kind, one.place) for one in drawn.sources] == [("kafka", "orders")]
    assert [one.name for one in drawn.operators] == ["dedupe"]


def test_watermark_join_and_limit_are_told(session: Any) -> None:
    rate = session.readStream.format("rate").load().withWatermark("timestamp", "90 seconds")
    left = rate.select("value", functions.col("timestamp").alias("l"))
    right = rate.select(functions.col("value").alias("v"), functions.col("timestamp").alias("r"))
    joined = left.join(right, functions.expr("value = v AND l = r"), "leftOuter")
    drawn = outline(joined.writeStream.format("noop"))
    (join,) = drawn.tree.steps("Join")
    assert join.field("type") == '"LeftOuter"'
    assert "(value = value)" in [words(one) for one in join.role("condition")]
    assert {one.delay_ms for one in drawn.tree.watermarks} == {90_000}
    assert [one.name for one in drawn.operators] == ["symmetricHashJoin"]


def test_a_source_keeps_its_name(session: Any) -> None:
    conf = {"spark.sql.streaming.queryEvolution.enableSourceEvolution": "true"}
    for key, value in conf.items():
        session.conf.set(key, value)
    rows = session.readStream.format("rate").name("ticks").load()
    drawn = outline(rows.writeStream.format("noop"), conf)
    assert [one.name for one in drawn.sources] == ["ticks"]


def test_code_that_spark_refuses_is_told_in_its_words(session: Any) -> None:
    rows = session.readStream.format("rate").load().groupBy("value").count()
    with pytest.raises(CannotOutline, match="Spark refuses the new code") as refused:
        outline(rows.writeStream.outputMode("append").format("noop"))
    assert "watermark" in refused.value.why


def test_the_pipeline_of_a_file_is_built_and_chosen(spark: Any, tmp_path: Path) -> None:
    application = tmp_path / "app.py"
    application.write_text(
        "from floodmark import pipeline\n"
        "@pipeline(checkpoint='ck/{region}')\n"
        "def first(spark, start, region='eu'):\n"
        "    return spark.readStream.format('rate').load().writeStream.format('noop')\n"
        "@pipeline(checkpoint='ck/other')\n"
        "def second(spark, start):\n"
        "    return spark.read.table('no_such_table').writeStream\n"
    )
    with built(f"{application}:first", {"region": "us"}) as found:
        assert found.values == {"region": "us"}
        assert outline(found.writer).operators == ()
    with built(str(application), checkpoints=("ck/eu",)) as found:
        assert found.name == "first"
    with pytest.raises(WrongUse, match="has 2 pipelines: first, second"), built(str(application)):
        pass
    with (
        pytest.raises(WrongUse, match="pipeline second fails before it starts"),
        built(f"{application}:second"),
    ):
        pass
