from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
orders = spark.readStream.schema("id STRING, time TIMESTAMP").json("s3://lake/orders")

query = (
    orders.writeStream.format("console")  # bad
    .outputMode("append")
)
orders.writeStream.format("console").trigger(once=True)  # bad
later = orders.writeStream.format("console")
later.start()


def writer():
    return orders.writeStream.format("console")
