from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
orders = spark.readStream.schema("id STRING, time TIMESTAMP").json("s3://lake/orders")

# On Databricks, see test_lint_rules.py: a path without a scheme is on DBFS there.
out = orders.writeStream.format("parquet")
out.option("checkpointLocation", "file:///data/ck").start("s3://lake/a")  # bad
out.option("checkpointLocation", "/home/me/ck").start("s3://lake/b")  # bad
out.option("checkpointLocation", "C:\\ck").start("s3://lake/c")  # bad
out.option("checkpointLocation", "hdfs://nn/ck").start("s3://lake/d")
out.option("checkpointLocation", "/data/ck").start("s3://lake/e")
