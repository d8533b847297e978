"""Twelve pipelines whose fate in a drill is known: six with a fault, six without."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

ROWS = 12
KEYS = 3
SCRIPT = """
from pyspark.sql import SparkSession, functions as F

spark = SparkSession.builder.appName("drilled").getOrCreate()
{code}
query = writer.option("checkpointLocation", "{base}/ck").start()
query.awaitTermination()
"""
PIPELINE = """
from floodmark import once, pipeline
from pyspark.sql import functions as F


@pipeline(checkpoint="{base}/ck", needs=("delta",))
def drilled(spark, start):
{code}
    return writer
"""


@dataclass(frozen=True)
class Drilled:
    code: str
    is_script: bool = False
    source: str = 'rows = spark.readStream.schema("id BIGINT, k STRING, v BIGINT").json("BASE/in")'
    fails: tuple[tuple[str, str], ...] = ()
    """Where it is caught, and what is wrong with the sink then."""
    advice: str = ""

    def write(self, base: Path) -> Path:
        base.mkdir(exist_ok=True)
        path = base / "app.py"
        code = f"{self.source}\n{self.code}".strip("\n").replace("BASE", str(base))
        if not self.is_script:
            code = "\n".join(f"    {line}" if line else "" for line in code.splitlines())
        path.write_text((SCRIPT if self.is_script else PIPELINE).format(base=base, code=code))
        return path


def sample(base: Path) -> Path:
    path = base / "sample.jsonl"
    path.write_text(
        "".join(
            json.dumps({"id": number, "k": f"k{number % KEYS}", "v": number}) + "\n"
            for number in range(ROWS)
        )
    )
    return path


FAULTY = {
    "append in foreachBatch": Drilled(
        """
def write(batch, batch_id):
    batch.write.format("delta").mode("append").save("BASE/out")

writer = rows.writeStream.foreachBatch(write)
""",
        fails=(("after-sink", "repeated"),),
        advice="once.delta",
    ),
    "a fixed txnAppId": Drilled(
        """
def write(batch, batch_id):
    (batch.write.format("delta").mode("append").option("txnAppId", "orders")
        .option("txnVersion", batch_id).save("BASE/out"))

writer = rows.writeStream.foreachBatch(write)
""",
        fails=(("new-checkpoint", "lost"),),
        advice="fixed-transaction-id",
    ),
    "an auto-increment insert": Drilled(
        """
import sqlite3

def write(batch, batch_id):
    with sqlite3.connect("BASE/out.db") as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS sink "
            "(n INTEGER PRIMARY KEY AUTOINCREMENT, id BIGINT, v BIGINT)")
        connection.executemany("INSERT INTO sink (id, v) VALUES (?, ?)",
            [(row.id, row.v) for row in batch.collect()])

writer = rows.writeStream.foreachBatch(write)
""",
        is_script=True,
        fails=(("after-sink", "repeated"),),
        advice="once.sql",
    ),
    "a plain file write": Drilled(
        """
def write(batch, batch_id):
    with open("BASE/out.txt", "a") as out:
        for row in batch.collect():
            out.write(f"{row.id} {row.v}\\n")

writer = rows.writeStream.foreachBatch(write)
""",
        is_script=True,
        fails=(("after-sink", "repeated"),),
        advice="batch-id-unused",
    ),
    "overwrite in update mode": Drilled(
        """
def write(batch, batch_id):
    batch.write.mode("overwrite").parquet("BASE/out")

firsts = rows.where("id < 6 OR k = 'k1'")
writer = firsts.groupBy("k").agg(F.sum("v").alias("total")).writeStream.outputMode("update")
writer = writer.foreachBatch(write)
""",
        fails=(("undisturbed", "lost"),),
        advice='outputMode("complete")',
    ),
    "a socket": Drilled(
        """
reader = spark.readStream.format("socket").option("host", "localhost").option("port", 9999)
writer = reader.load().writeStream.format("parquet").option("path", "BASE/out")
""",
        is_script=True,
        source="",
        fails=(("after-offset", "lost"),),
        advice="non-replayable-source",
    ),
}

SOUND = {
    "once.delta": Drilled(
        """
writer = rows.writeStream.foreachBatch(once.delta("BASE/out"))
"""
    ),
    "once.sql": Drilled(
        """
from sqlalchemy import text

def insert(connection, batch, batch_id):
    connection.execute(text("CREATE TABLE IF NOT EXISTS sink "
        "(n INTEGER PRIMARY KEY AUTOINCREMENT, id BIGINT, v BIGINT)"))
    for row in batch.collect():
        connection.execute(text("INSERT INTO sink (id, v) VALUES (:id, :v)"), row.asDict())

writer = rows.drop("k").writeStream.foreachBatch(once.sql("sqlite:///BASE/out.db", insert))
"""
    ),
    "Spark's Delta sink, complete": Drilled(
        """
writer = rows.groupBy("k").agg(F.sum("v").alias("total")).writeStream.outputMode("complete")
writer = writer.format("delta").option("path", "BASE/out")
"""
    ),
    "Spark's file sink": Drilled(
        """
writer = rows.dropDuplicates(["id"]).writeStream.format("parquet").option("path", "BASE/out")
""",
        is_script=True,
    ),
    "a merge by key": Drilled(
        """
from delta.tables import DeltaTable

def write(batch, batch_id):
    if not DeltaTable.isDeltaTable(spark, "BASE/out"):
        batch.limit(0).write.format("delta").save("BASE/out")
    (DeltaTable.forPath(spark, "BASE/out").alias("t").merge(batch.alias("b"), "t.k = b.k")
        .whenMatchedUpdateAll().whenNotMatchedInsertAll().execute())

totals = rows.groupBy("k").agg(F.sum("v").alias("total"))
writer = totals.writeStream.outputMode("update").foreachBatch(write)
"""
    ),
    "a folder a batch, overwritten": Drilled(
        """
def write(batch, batch_id):
    batch.write.mode("overwrite").json(f"BASE/out/batch={batch_id}")

writer = rows.writeStream.foreachBatch(write)
""",
        is_script=True,
    ),
}
