from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
orders = spark.readStream.schema("id STRING, time TIMESTAMP").json("s3://lake/orders")

lines = (
    spark.readStream.format("socket")  # bad
    .option("host", "localhost")
    .load()
)
lines.writeStream.format("delta").option("checkpointLocation", "s3://lake/ck/a").start("s3://lake/a")
spark.readStream.format("socket").load().writeStream.format("console").start()
