from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
orders = spark.readStream.schema("id STRING, time TIMESTAMP").json("s3://lake/orders")

lost = spark.readStream.option("checkpointLocation", "s3://lake/ck").text("s3://lake/in")  # bad
lost.writeStream.format("console").start()
