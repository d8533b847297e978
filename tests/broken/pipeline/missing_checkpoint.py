from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
orders = spark.readStream.schema("id STRING, time TIMESTAMP").json("s3://lake/orders")

orders.writeStream.format("delta").start("s3://lake/a")  # bad
orders.writeStream.start("s3://lake/b")  # bad
orders.writeStream.toTable("orders")  # bad
orders.writeStream.table("orders")  # bad
(
    orders.writeStream.format("kafka")
    .option("topic", "out")
    .start()  # bad
)
orders.writeStream.foreachBatch(lambda rows, batch: store(rows, batch)).start()  # bad


def look(rows, batch):
    print(batch, rows.count())
    rows.select("id").show()


# Nothing is kept, so nothing is written twice.
orders.writeStream.foreachBatch(look).start()
orders.writeStream.format("console").start()
orders.writeStream.format("memory").queryName("t").start()


def begin(writer, **settings):
    writer.format("delta").outputMode("append").start("s3://lake/c")
    orders.writeStream.format("delta").options(**settings).start("s3://lake/d")
    orders.writeStream.format("delta").of_our_own(settings).start("s3://lake/f")
    orders.writeStream.format("delta").start("s3://lake/e", checkpointLocation="s3://lake/ck/e")
