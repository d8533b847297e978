from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
orders = spark.readStream.schema("id STRING, time TIMESTAMP").json("s3://lake/orders")

kafka = (
    spark.readStream.format("kafka")
    .option("startingOffsets", "earliest")
    .option("failOnDataLoss", "false")  # bad
    .load()
)
kafka.writeStream.format("console").start()


class Job:
    def read(self):
        return (
            spark.readStream.format("kafka")
            .option("startingOffsets", "earliest")
            .option("failOnDataLoss", False)  # bad
            .load()
        )


strict = spark.readStream.format("kafka").option("startingOffsets", "latest")
strict.option("failOnDataLoss", True).load().writeStream.format("console").start()
