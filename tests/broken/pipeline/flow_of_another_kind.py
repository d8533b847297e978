from pyspark import pipelines as dp
from pyspark.sql import SparkSession

spark = SparkSession.active()


@dp.table
def orders():  # bad
    return spark.read.json("s3://lake/orders")


@dp.materialized_view(name="all_of_them")
def everything():  # bad
    return spark.readStream.schema("id STRING").json("s3://lake/orders")


@dp.table(name="clicks")
def seen():
    return spark.readStream.schema("id STRING").json("s3://lake/clicks")


@dp.materialized_view
def counts():
    return spark.read.table("clicks").groupBy("id").count()


@dp.append_flow(target="clicks")
def from_elsewhere():
    return load("clicks")


@dp.temporary_view
def either():
    return spark.read.json("s3://lake/orders")


def load(name):
    return spark.readStream.table(name)
