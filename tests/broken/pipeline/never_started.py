from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
orders = spark.readStream.schema("id STRING, time TIMESTAMP").json("s3://lake/orders")

query = (
    orders.writeStream.format("console")  # bad
    .outputMode("append")
)
orders.writeStream.format("console").trigger(availableNow=True)  # bad
later = orders.writeStream.format("console")
later.start()
bronze = orders.writeStream.option("checkpointLocation", "s3://lake/ck/bronze").table("bronze")
spark.readStream.table("bronze").writeStream.format("console")  # bad


def writer():
    return orders.writeStream.format("console")
