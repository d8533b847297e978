"""A pipeline that sums orders by customer, as the text of a file: trials write it and change it."""

from __future__ import annotations

_CODE = """
import pyspark.sql.functions as F
from floodmark import pipeline

@pipeline(checkpoint="{root}/checkpoint")
def sales(spark, start, *, root, orders, sink):
    rows = spark.readStream.schema("at TIMESTAMP, customer STRING, paid LONG").json(orders)
    summed = rows.groupBy(KEYS).agg(SUMS)

    def write(batch, number):
        batch.coalesce(1).write.mode("overwrite").json(sink)

    return summed.writeStream.outputMode("complete").foreachBatch(write)
"""
TOTAL = 'F.sum("paid").alias("total")'
COUNTED = TOTAL + ', F.count("paid").alias("count")'


CUSTOMER = '"customer"'
IN_WINDOWS = 'F.window("at", "1 hour"), "customer"'


def application(sums: str, keys: str = CUSTOMER) -> str:
    return _CODE.replace("SUMS", sums).replace("KEYS", keys)
