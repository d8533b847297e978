from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
orders = spark.readStream.schema("id STRING, time TIMESTAMP").json("s3://lake/orders")

from pyspark.sql import functions as F

CK = "s3://lake/ck/"
customers = spark.read.parquet("s3://lake/customers")
sums = orders.groupBy("id").agg(F.count("*"))  # bad
sums.writeStream.option("checkpointLocation", CK + "a").start("a")
minutes = orders.groupBy(F.window("time", "1 minute")).count()  # bad
minutes.writeStream.outputMode("append").format("console").start()
late = orders.withWatermark("time", "1 hour").groupBy(F.window("time", "1 minute")).count()
late.writeStream.option("checkpointLocation", CK + "b").start("b")
# A table beside the stream may be grouped: it is read as a batch.
known = orders.join(customers.groupBy("id").count(), "id")
known.writeStream.option("checkpointLocation", CK + "c").start("c")
orders.groupBy("id").count().writeStream.outputMode("complete").format("console").start()


def begin(mode):
    orders.groupBy("id").count().writeStream.outputMode(mode).format("console").start()
