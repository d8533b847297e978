"""Sales by customer: CSV files in, running totals out, kept through every restart.

    floodmark run examples/sales.py --available-now

The state (each customer's sum so far) lies in the checkpoint. Kill the driver, start it
again, add files: the sums go on where they were.
"""

from floodmark import pipeline

ORDERS = "transactionId STRING, customerId STRING, itemId STRING, amountPaid DECIMAL(12, 2)"


@pipeline(checkpoint="{base}/checkpoints/sales", conf={"spark.sql.shuffle.partitions": 4})
def sales(spark, start, *, base: str = "data", files_per_batch: int = 1000):
    orders = (
        spark.readStream.schema(ORDERS)
        .option("header", True)
        .option("maxFilesPerTrigger", files_per_batch)
        .csv(f"{base}/orders")
    )
    totals = orders.groupBy("customerId").sum("amountPaid").toDF("customerId", "total")
    return (
        totals.writeStream.outputMode("complete").format("delta").option("path", f"{base}/totals")
    )
