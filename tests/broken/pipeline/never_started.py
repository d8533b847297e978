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


def test(mock):
    mock.writeStream.format.assert_called_once_with("console")
    made = mock.writeStream.format.return_value
    made.option.assert_not_called()


def writer():
    return orders.writeStream.format("console")
