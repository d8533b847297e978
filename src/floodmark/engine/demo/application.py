"""Totals sales by customer, from CSV files.

`floodmark demo` put this file here. Run it yourself: floodmark run sales.py --available-now
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from floodmark.engine.pipelines.decorator import pipeline

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import DataStreamWriter

    from floodmark.engine.pipelines.start_positions import Start

HERE = Path(__file__).resolve().parent
ORDERS = "transactionId STRING, customerId STRING, itemId STRING, amountPaid DECIMAL(12, 2)"


@pipeline(
    checkpoint=str(HERE / "checkpoints" / "sales"),
    conf={"spark.sql.shuffle.partitions": 2, "spark.ui.enabled": False},
)
def sales(spark: SparkSession, start: Start) -> DataStreamWriter:
    orders = (
        spark.readStream.schema(ORDERS)
        .option("header", True)
        .option("maxFilesPerTrigger", 2)
        .csv(str(HERE / "orders"))
    )
    totals = orders.groupBy("customerId").sum("amountPaid").toDF("customerId", "total")

    def replace_totals(batch: DataFrame, batch_id: int) -> None:
        # Writing the same totals twice changes nothing, so a batch can safely run again.
        batch.coalesce(1).write.mode("overwrite").parquet(str(HERE / "totals"))

    return totals.writeStream.outputMode("complete").foreachBatch(replace_totals)
