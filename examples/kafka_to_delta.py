"""Orders from Kafka into a Delta table, beginning exactly where an earlier stream stopped.

    floodmark run examples/kafka_to_delta.py --set servers=localhost:9092

A new checkpoint begins at the offsets of a start file, if one is given:

    floodmark offsets data/checkpoints/orders --starting-offsets > start.json
    floodmark run examples/kafka_to_delta.py --start start.json --set version=2
"""

from pyspark.sql.functions import col, from_json

from floodmark import pipeline

ORDER = "orderId STRING, customerId STRING, amountPaid DECIMAL(12, 2)"


@pipeline(checkpoint="{base}/checkpoints/orders-v{version}")
def orders(
    spark,
    start,
    *,
    base: str = "data",
    servers: str = "localhost:9092",
    topic: str = "orders",
    version: int = 1,
):
    records = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", servers)
        .option("subscribe", topic)
        .option("startingOffsets", start.kafka(topic, otherwise="earliest"))
        .load()
    )
    rows = records.select(
        from_json(col("value").cast("string"), ORDER).alias("order"),
        "partition",
        "offset",
    ).select("order.*", "partition", "offset")
    return rows.writeStream.format("delta").option("path", f"{base}/orders-table")
