from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
orders = spark.readStream.schema("id STRING, time TIMESTAMP").json("s3://lake/orders")

out = orders.writeStream.format("parquet").option("checkpointLocation", "s3://lake/ck/a")
out.trigger(once=True).start("s3://lake/a")  # bad
out = orders.writeStream.format("parquet").option("checkpointLocation", "s3://lake/ck/b")
out.trigger(availableNow=True).start("s3://lake/b")
out = orders.writeStream.format("parquet").option("checkpointLocation", "s3://lake/ck/c")
out.trigger(processingTime="1 minute").start("s3://lake/c")
