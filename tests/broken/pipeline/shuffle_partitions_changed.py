from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
orders = spark.readStream.schema("id STRING, time TIMESTAMP").json("s3://lake/orders")

spark.conf.set("spark.sql.shuffle.partitions", 64)
late = orders.withWatermark("time", "1 hour").dropDuplicates(["id"])
late.writeStream.format("delta").option("checkpointLocation", "s3://lake/ck/a").start("s3://lake/a")
spark.conf.set("spark.sql.shuffle.partitions", 128)  # bad
