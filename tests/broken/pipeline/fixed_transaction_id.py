from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
orders = spark.readStream.schema("id STRING, time TIMESTAMP").json("s3://lake/orders")

VERSION = spark.conf.get("spark.app.version")


def put(rows, batch_id):
    rows.write.format("delta").option("txnVersion", batch_id).option(
        "txnAppId", "orders"  # bad
    ).save("s3://lake/a")
    rows.write.format("delta").option("txnVersion", batch_id).option(
        "txnAppId", f"orders-{VERSION}"
    ).save("s3://lake/b")


orders.writeStream.foreachBatch(put).option("checkpointLocation", "s3://lake/ck/a").start()
