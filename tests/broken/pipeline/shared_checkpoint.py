from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
orders = spark.readStream.schema("id STRING, time TIMESTAMP").json("s3://lake/orders")

import sys

CK = "s3://lake/ck/orders"
one = orders.writeStream.format("parquet").option("checkpointLocation", CK).start("s3://lake/a")
two = orders.writeStream.format("parquet").option("checkpointLocation", CK + "/").start("b")  # bad
# The same query, stopped and started again; and a checkpoint that is made anew in between.
first = orders.writeStream.format("parquet").option("checkpointLocation", "s3://lake/e").start("e")
first.stop()
orders.writeStream.format("parquet").option("checkpointLocation", "s3://lake/e").start("e")
orders.writeStream.format("parquet").option("checkpointLocation", "s3://lake/f").start("f")
dbutils.fs.rm("s3://lake/f", True)  # floodmark: allow checkpoint-deleted-by-code
orders.writeStream.format("parquet").option("checkpointLocation", "s3://lake/f").start("g")
for name in ("x", "y"):
    orders.writeStream.format("parquet").option("checkpointLocation", "s3://lake/all").start(name)  # bad
for name in ("x", "y"):
    orders.writeStream.format("parquet").option("checkpointLocation", f"s3://lake/{name}").start(name)
for attempt in range(3):
    orders.writeStream.format("parquet").option(
        "checkpointLocation", "s3://lake/again"
    ).start("s3://lake/c").awaitTermination()
if "--once" in sys.argv:
    orders.writeStream.format("parquet").option("checkpointLocation", "s3://lake/either").start("d")
else:
    orders.writeStream.format("parquet").option("checkpointLocation", "s3://lake/either").start("d")
