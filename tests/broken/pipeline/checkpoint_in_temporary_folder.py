from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
orders = spark.readStream.schema("id STRING, time TIMESTAMP").json("s3://lake/orders")

import os
import tempfile

BASE = "/tmp"
out = orders.writeStream.format("parquet")
out.option("checkpointLocation", "/tmp/ck").start("s3://lake/a")  # bad
out.option("checkpointLocation", f"{BASE}/checkpoints/b").start("s3://lake/b")  # bad
out.option("checkpointLocation", tempfile.mkdtemp()).start("s3://lake/c")  # bad
out.option("checkpointLocation", "file:///var/tmp/ck").start("s3://lake/d")  # bad
out.option("checkpointLocation", "dbfs:/tmp/ck").start("s3://lake/e")  # bad
out.option("checkpointLocation", "/dbfs/tmp/ck/f").start("s3://lake/e2")  # bad
out.option("checkpointLocation", "/dbfs/data/ck").start("s3://lake/e3")
given = os.getenv("CHECKPOINT", "/tmp/ck/g")
out.option("checkpointLocation", given).start("s3://lake/e4")  # bad
out.option("checkpointLocation", os.environ.get("CK", "s3://lake/ck")).start("s3://lake/e5")
out.option("checkpointLocation", "s3://lake/tmp/ck").start("s3://lake/f")
out.option("checkpointLocation", "/data/tmpl/ck").start("s3://lake/g")
