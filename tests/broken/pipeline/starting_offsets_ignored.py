from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
orders = spark.readStream.schema("id STRING, time TIMESTAMP").json("s3://lake/orders")

import json

kafka = spark.readStream.format("kafka").option(
    "startingOffsets", '{"orders":{"0":400000}}'  # bad
)
START = {"orders": {"0": 400000}}
again = spark.readStream.format("kafka").option("startingOffsets", json.dumps(START))  # bad
again.load().writeStream.format("delta").option("checkpointLocation", "s3://lake/ck/c").start("c")
kafka.load().writeStream.format("delta").option("checkpointLocation", "s3://lake/ck/a").start("a")
both = spark.readStream.format("kafka").option("startingOffsets", "earliest").load()
both.writeStream.format("delta").option("checkpointLocation", "s3://lake/ck/b").start("b")
