"""Each example runs, with the real things that it names."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from floodmark.engine.pipelines.application import load_application
from floodmark.engine.pipelines.start_positions import Start, parse_start
from floodmark.engine.run.options import RunOptions
from floodmark.engine.run.runtime import run_application
from floodmark.engine.run.stream import RunReport
from floodmark.engine.run.triggers import Trigger

if TYPE_CHECKING:
    from services.kafka import KafkaServer

pytestmark = pytest.mark.spark
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def run(name: str, start: Start | None = None, **settings: str) -> RunReport:
    application = load_application(str(EXAMPLES / name))
    options = RunOptions(Trigger(available_now=True), settings, start or Start())
    return run_application(application, options)


def table(spark: Any, path: Path) -> list[Any]:
    found: list[Any] = spark.read.format("delta").load(str(path)).collect()
    return found


def put_sales(folder: Path, name: str, *sales: tuple[str, str]) -> None:
    folder.mkdir(exist_ok=True)
    lines = [f"{name}-{n},{customer},i1,{paid}" for n, (customer, paid) in enumerate(sales)]
    header = "transactionId,customerId,itemId,amountPaid"
    (folder / f"{name}.csv").write_text("\n".join([header, *lines, ""]))


def test_sales_keeps_its_sums_over_a_restart(spark: Any, tmp_path: Path) -> None:
    put_sales(tmp_path / "orders", "a", ("c1", "10.00"), ("c2", "5.50"))
    run("sales.py", base=str(tmp_path))
    put_sales(tmp_path / "orders", "b", ("c1", "0.25"))
    report = run("sales.py", base=str(tmp_path))
    assert report.pipelines[0].rows == 1
    assert {row["customerId"]: row["total"] for row in table(spark, tmp_path / "totals")} == {
        "c1": Decimal("10.25"),
        "c2": Decimal("5.50"),
    }


def produce(kafka: KafkaServer, topic: str, orders: range) -> None:
    values = (json.dumps({"orderId": f"o{n}", "customerId": "c", "amountPaid": n}) for n in orders)
    kafka.produce(topic, values)


@pytest.mark.services
def test_kafka_to_delta_to_delta(spark: Any, kafka: KafkaServer, tmp_path: Path) -> None:
    topic = kafka.create_topic("orders", partitions=2)
    options = {"base": str(tmp_path), "servers": kafka.bootstrap, "topic": topic}
    produce(kafka, topic, range(0, 200, 20))
    assert run("kafka_to_delta.py", **options).pipelines[0].rows == 10

    # A new checkpoint that begins exactly where the first one stopped.
    offsets = (tmp_path / "checkpoints/orders-v1/offsets/0").read_bytes().splitlines()[-1]
    produce(kafka, topic, range(200, 300, 20))
    report = run("kafka_to_delta.py", parse_start(offsets), **options, version="2")
    assert report.pipelines[0].rows == 5
    orders = table(spark, tmp_path / "orders-table")
    assert sorted(row["amountPaid"] for row in orders) == list(range(0, 300, 20))
    assert len({(row["partition"], row["offset"]) for row in orders}) == 15

    run("delta_to_delta.py", base=str(tmp_path))
    produce(kafka, topic, range(300, 301))
    run("kafka_to_delta.py", parse_start(offsets), **options, version="2")
    run("delta_to_delta.py", base=str(tmp_path))
    large = table(spark, tmp_path / "large-orders")
    assert sorted(row["amountPaid"] for row in large) == [*range(100, 300, 20), 300]
