"""From one Delta table to another, batch by batch, each written exactly once.

    floodmark run examples/delta_to_delta.py --available-now

The target is written by foreachBatch, so anything can be done with a batch on its way;
`once.delta` records (query, batch) in the table's own log, and a batch that a restart
runs again is not written twice.
"""

from pyspark.sql.functions import col

from floodmark import once, pipeline


@pipeline(checkpoint="{base}/checkpoints/large-orders")
def large_orders(spark, start, *, base: str = "data", at_least: float = 100.0):
    source = f"{base}/orders-table"
    orders = spark.readStream.format("delta").options(**start.delta(source)).load(source)

    def only_large(batch):
        return batch.where(col("amountPaid") >= at_least)

    return orders.writeStream.foreachBatch(once.delta(f"{base}/large-orders", only_large))
