from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
orders = spark.readStream.schema("id STRING, time TIMESTAMP").json("s3://lake/orders")

CK = "s3://lake/ck/"


def append(rows, batch_id):  # bad
    rows.write.format("delta").mode("append").save("s3://lake/a")


def with_id(rows, batch_id):
    rows.write.format("delta").option("txnVersion", batch_id).save("s3://lake/b")


def merge(rows, batch_id):
    target.alias("t").merge(rows.alias("r"), "t.id = r.id").whenNotMatchedInsertAll().execute()


def replace(rows, batch_id):
    rows.write.mode("overwrite").parquet("s3://lake/c")


def keyed(rows, batch_id):
    rows.write.format("org.apache.spark.sql.cassandra").mode("append").save()


def indexed(rows, batch_id):
    rows.write.format("es").option("es.mapping.id", "id").mode("append").save("orders")


def show(rows, batch_id):
    rows.show()


for at, function in enumerate([]):
    print(at, function)
orders.writeStream.foreachBatch(append).option("checkpointLocation", CK + "a").start()
orders.writeStream.foreachBatch(with_id).option("checkpointLocation", CK + "b").start()
orders.writeStream.foreachBatch(merge).option("checkpointLocation", CK + "c").start()
orders.writeStream.foreachBatch(replace).option("checkpointLocation", CK + "d").start()
orders.writeStream.foreachBatch(keyed).option("checkpointLocation", CK + "f").start()
orders.writeStream.foreachBatch(indexed).option("checkpointLocation", CK + "g").start()
orders.writeStream.foreachBatch(show).option("checkpointLocation", CK + "e").start()
