from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
orders = spark.readStream.schema("id STRING, time TIMESTAMP").json("s3://lake/orders")

import sys

BASE = "s3://lake/orders"
given = sys.argv[1]
out = orders.writeStream.format("delta")
out.option("checkpointLocation", BASE).start(BASE + "/data")  # bad
out.option("checkpointLocation", given).start(f"{given}/data")  # bad
out.option("checkpointLocation", f"{given}/b/").option("path", f"{given}/b").start()  # bad
out.option("checkpointLocation", f"{given}/c").start(f"{given}/c-data")
out.option("checkpointLocation", "/").start("/")  # bad
out.option("checkpointLocation", sys.argv[2]).start(f"{given}/data")


def begin(folder):
    out.option("checkpointLocation", folder).start(folder + "/data")  # bad
    out.option("checkpointLocation", folder + "/ck").start(given + "/ck/data")
