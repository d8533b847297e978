from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
orders = spark.readStream.schema("id STRING, time TIMESTAMP").json("s3://lake/orders")

out = orders.writeStream.format("console")
out.option("checkPoint", "s3://lake/ck/a").start()  # bad
out.option("checkpoint_location", "s3://lake/ck/b").start()  # bad
# The misspelling is the one finding, though a table needs a checkpoint.
orders.writeStream.option("checkpoint_loc", "s3://lake/ck/t").toTable("orders")  # bad
out.option("checkpointLocaton", "s3://lake/ck/c").start()  # bad
out.options(checkpoint="s3://lake/ck/d").start()  # bad
(
    out.outputMode("append")
    .option("checkpointDir", "s3://lake/ck/e")  # bad
    .start()
)
orders.writeStream.start(format="console", checkpointPath="s3://lake/ck/f")  # bad
settings = {
    "checkpointLocations": "s3://lake/ck/g",  # bad
}
out.options(**settings).start()


def begin(writer):
    writer.queryName("sales").option("check-point", "s3://lake/ck/h").start()  # bad


# Spark does not tell large letters from small ones.
out.option("CHECKPOINTLOCATION", "s3://lake/ck/right").start()
out.option("checkpointLocation", "s3://lake/ck/also-right").option("truncate", False).start()
out.option("checkPoint", "meant").start()  # floodmark: allow misspelt-checkpoint-option
