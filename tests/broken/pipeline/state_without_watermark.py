from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
orders = spark.readStream.schema("id STRING, time TIMESTAMP").json("s3://lake/orders")

from pyspark.sql import functions as F
from pyspark.sql.streaming.state import GroupStateTimeout

CK = "s3://lake/ck/"
clicks = spark.readStream.schema("id STRING").json("s3://lake/clicks")


def begin(frame, name, mode="append"):
    print(frame, name)


orders.dropDuplicates(["id"]).writeStream.option("checkpointLocation", CK + "a").start("a")  # bad
orders.join(clicks, "id").writeStream.option("checkpointLocation", CK + "b").start("b")  # bad
orders.groupBy("id").count().writeStream.outputMode("update").format("console").start()  # bad
minutes = orders.groupBy(F.window("time", "1 minute")).count()  # bad
minutes.writeStream.outputMode("update").format("console").start()
kept = orders.groupBy("id").applyInPandasWithState(  # bad
    print, "a INT", "b INT", "complete", GroupStateTimeout.NoTimeout
)
kept.writeStream.outputMode("complete").format("console").start()
late = orders.withWatermark("time", "1 hour")
late.dropDuplicates(["id"]).writeStream.option("checkpointLocation", CK + "c").start("c")
late.join(clicks, "id").writeStream.option("checkpointLocation", CK + "d").start("d")
orders.groupBy("id").count().writeStream.outputMode("complete").format("console").start()


def count(frame):
    frame.groupBy("id").count().writeStream.outputMode("update").format("console").start()
