from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
orders = spark.readStream.schema("id STRING, time TIMESTAMP").json("s3://lake/orders")

import os

LAKE = os.environ["LAKE"]
out = orders.writeStream.format("delta")
out.option("checkpointLocation", "s3://lake/a/ck").start("s3://lake/a")  # bad
out.option("path", "s3://lake/b").option("checkpointLocation", "s3://lake/b/ck").start()  # bad
out.option("checkpointLocation", f"{LAKE}/e/ck").start(f"{LAKE}/e")  # bad
out.option("checkpointLocation", f"{LAKE}/ck/e").start(f"{LAKE}/e")
out.option("checkpointLocation", "s3://lake/c/_checkpoints").start("s3://lake/c")
out.option("checkpointLocation", "s3://lake/d-ck").start("s3://lake/d")
