from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
orders = spark.readStream.schema("id STRING, time TIMESTAMP").json("s3://lake/orders")

kafka = spark.readStream.format("kafka").option("subscribe", "orders").load()  # bad
kafka.writeStream.format("console").start()
said = spark.readStream.format("kafka").option("startingOffsets", "latest").load()
said.writeStream.format("console").start()


def other(**settings):
    spark.readStream.format("kafka").options(**settings).load().writeStream.format("console").start()
