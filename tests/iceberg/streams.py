"""The campaign's streams, as a plain script: from an Iceberg table into another.

STREAM says which: totals (state, complete), counted (the same with one column more), copy
(Iceberg's own sink), once (once.iceberg, which dies after its write where DIES names the batch).
"""

from __future__ import annotations

import os
import signal
from typing import Any

from lake import session
from pyspark.sql import functions

spark = session("streams")
reader = spark.readStream.format("iceberg").option("streaming-max-files-per-micro-batch", 1)
if os.environ.get("FROM_MS"):
    reader = reader.option("stream-from-timestamp", os.environ["FROM_MS"])
orders = reader.load("lake.db.orders")
which = os.environ["STREAM"]
if which == "totals":
    totals = orders.groupBy("customer").agg(functions.sum("amount").alias("total"))
    writer = totals.writeStream.outputMode("complete").format("iceberg")
    writer = writer.option("path", "lake.db.totals")
elif which == "counted":
    totals = orders.groupBy("customer").agg(
        functions.sum("amount").alias("total"), functions.count("*").alias("many")
    )
    writer = totals.writeStream.outputMode("complete").format("iceberg")
    writer = writer.option("path", "lake.db.totals")
elif which == "copy":
    writer = orders.writeStream.format("iceberg").option("path", "lake.db.copy")
else:
    from floodmark import once

    write = once.iceberg(os.environ.get("INTO", "lake.db.copy"))

    def written(batch: Any, batch_id: int) -> None:
        write(batch, batch_id)
        if os.environ.get("DIES") == str(batch_id):
            os.kill(os.getpid(), signal.SIGKILL)

    writer = orders.writeStream.foreachBatch(written)
writer = writer.option("checkpointLocation", os.environ["CP"])
writer.trigger(availableNow=True).start().awaitTermination()
