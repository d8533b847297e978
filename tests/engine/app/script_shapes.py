"""Scripts as people write them, by name: each starts one query that has the checkpoint CK.

IN, OUT, CK and HERE stand for folders, TABLE for a table's name.
"""

from __future__ import annotations

HEAD = """
from pyspark.sql import SparkSession, functions as F

spark = SparkSession.builder.appName("orders").getOrCreate()
orders = spark.readStream.schema("customer string, amount long").json("IN")
totals = orders.groupBy("customer").agg(F.sum("amount").alias("total"))
"""
START = """
query = (totals.writeStream.outputMode("update").format("noop")
    .option("checkpointLocation", "CK").start())
"""
PLAIN = HEAD + START + "query.awaitTermination()\n"

SHAPES: dict[str, str] = {
    "plain": PLAIN,
    "main guard": """
import argparse
from pyspark.sql import SparkSession, functions as F

def main(argv=None):
    options = argparse.ArgumentParser()
    options.add_argument("--out", default="OUT")
    given = options.parse_args(argv)
    spark = SparkSession.builder.getOrCreate()
    rows = spark.readStream.schema("customer string, amount long").json("IN")
    (rows.writeStream.format("parquet").option("checkpointLocation", "CK")
        .start(given.out).awaitTermination())

if __name__ == "__main__":
    main()
""",
    "keywords of start": HEAD
    + """
totals.writeStream.start(
    format="noop", outputMode="complete", queryName="named", checkpointLocation="CK"
).awaitTermination(10)
""",
    "to a table": HEAD + 'orders.writeStream.option("checkpointLocation", "CK").toTable("TABLE")\n',
    "table of Databricks": HEAD
    + 'orders.writeStream.option("checkpointLocation", "CK").table("TABLE")\n',
    "for each batch": HEAD
    + """
def save(rows, number):
    rows.write.mode("append").parquet("OUT")

writer = totals.writeStream.foreachBatch(save).outputMode("update")
writer.option("checkpointLocation", "CK").start()
spark.streams.awaitAnyTermination()
""",
    "batch writes before and after": HEAD
    + """
rows = spark.createDataFrame([("c1", 1)], "customer string, amount long")
rows.write.mode("overwrite").parquet("OUT")
rows.write.saveAsTable("TABLE")
rows.writeTo("TABLE").using("parquet").createOrReplace()
rows.foreach(lambda row: open("HERE/written", "a").write("row"))
rows.rdd.saveAsTextFile("OUT/text")
"""
    + START
    + 'query.awaitTermination()\nrows.write.mode("overwrite").json("CK")\n',
    "commands of SQL": HEAD
    + """
spark.sql("CREATE DATABASE IF NOT EXISTS db_TABLE")
spark.sql("CREATE TABLE IF NOT EXISTS TABLE (customer string) USING parquet LOCATION 'OUT'")
spark.sql("-- a note\\nINSERT INTO TABLE VALUES ('c1')")
spark.sql("CREATE OR REPLACE TEMP VIEW small AS SELECT 'c1' AS customer")
assert spark.sql("SELECT * FROM small").count() == 1
"""
    + START,
    "Delta's tables": HEAD
    + """
from delta.tables import DeltaTable
table = DeltaTable.forPath(spark, "DELTA")
table.delete("customer = 'c1'")
table.alias("t").merge(table.toDF().alias("s"), "t.customer = s.customer") \\
    .whenMatchedUpdateAll().execute()
table.vacuum(0)
table.optimize().executeCompaction()
spark.sql("DELETE FROM delta.`DELTA`")
"""
    + START,
    "files by Python": """
import logging, os, pathlib, shutil, tempfile
logging.getLogger("orders").addHandler(logging.FileHandler("HERE/orders.log"))
logging.getLogger("orders").warning("begins")
os.makedirs("HERE/made/deep", exist_ok=True)
shutil.rmtree("CK", ignore_errors=True)
pathlib.Path("HERE/script.pid").write_text("1")
assert pathlib.Path("HERE/script.pid").read_text() == "1"
lock = os.open("HERE/script.lock", os.O_CREAT | os.O_EXCL | os.O_WRONLY)
os.write(lock, b"held")
os.close(lock)
assert open("HERE/script.lock").read() == "held"
os.rename("IN", "HERE/moved")
for name in os.listdir("IN"):
    os.remove(os.path.join("IN", name))
with tempfile.TemporaryDirectory() as own, open(own + "/file", "w") as file:
    file.write("mine")
"""
    + PLAIN,
    "other programs": PLAIN.replace(
        "spark =",
        """import subprocess, os
try:
    subprocess.run(["touch", "HERE/touched"], check=True)
except OSError:
    pass
try:
    os.system("touch HERE/touched")
except OSError:
    pass
spark =""",
        1,
    ),
    "writers of the JVM": HEAD
    + """
rows = spark.createDataFrame([("c1", 1)], "customer string, amount long")
rows._jdf.write().mode("append").parquet("OUT")
rows._jdf.sparkSession().range(3).write().parquet("HERE/jvm")
rows._jdf.writeTo("TABLE").create()
"""
    + START,
    "a log of its own": HEAD
    + """
import logging, logging.handlers
handler = logging.handlers.RotatingFileHandler("HERE/job.log", maxBytes=1000000)
logging.basicConfig(handlers=[handler], level=logging.INFO)
logging.getLogger("orders").addHandler(logging.FileHandler("HERE/orders.log"))
logging.info("begins")
"""
    + START,
    "Hadoop's file system": HEAD
    + """
jvm = spark._jvm
path = jvm.org.apache.hadoop.fs.Path("CK")
fs = path.getFileSystem(spark._jsc.hadoopConfiguration())
if fs.exists(path):
    fs.delete(path, True)
fs.mkdirs(jvm.org.apache.hadoop.fs.Path("HERE/made"))
"""
    + START,
    "waits in a loop": """
import time
"""
    + HEAD
    + START
    + "while True:\n    time.sleep(60)\n    print(query.lastProgress)\n",
    "while it is active": "import time\n"
    + HEAD
    + START
    + "while query.isActive:\n    time.sleep(60)\nspark.stop()\n",
    "starts again for ever": "import time\n"
    + HEAD
    + """
while True:
    try:
        writer = totals.writeStream.outputMode("update").format("noop")
        query = writer.start(checkpointLocation="CK")
        query.awaitTermination()
    except Exception:
        time.sleep(30)
""",
    "floodmark's own start": HEAD
    + """
import floodmark
writer = totals.writeStream.outputMode("update").format("noop")
floodmark.start(writer, checkpoint="CK").awaitTermination()
""",
    "under floodmark.auto": "import floodmark.auto\n" + PLAIN,
    "in a thread": "import threading\n"
    + HEAD
    + """
def work():
    totals.writeStream.outputMode("update").format("noop").start(checkpointLocation="CK").awaitTermination()

one = threading.Thread(target=work)
one.start()
one.join()
""",
    "catches everything": HEAD
    + "try:\n"
    + "".join(f"    {line}\n" for line in START.strip().split("\n"))
    + "    query.awaitTermination()\nexcept BaseException:\n    pass\n",
    "exits": "import sys, atexit\natexit.register(lambda: open('HERE/at-exit', 'w').close())\n"
    + HEAD
    + START
    + "sys.exit(0)\n",
    "settings of the session": """
from pyspark.sql import SparkSession, functions as F
spark = (SparkSession.builder.appName("orders").config("spark.sql.shuffle.partitions", "3")
    .config("spark.sql.session.timeZone", "Asia/Tokyo").getOrCreate())
spark.conf.set("spark.sql.streaming.checkpointLocation", "ROOT")
orders = spark.readStream.schema("customer string, amount long").json("IN")
totals = orders.groupBy("customer").count()
totals.writeStream.queryName("ck").outputMode("update").format("noop").start()
""",
    "a module beside it": """
from beside_shapes import build, spark_session
spark = spark_session()
query = build(spark, "IN").writeStream.outputMode("update").format("noop") \\
    .option("checkpointLocation", "CK").start()
""",
    "fails after the start": HEAD
    + START
    + 'query.awaitTermination()\nspark.table("nowhere").show()\n',
    "functions of Python": """
from dataclasses import dataclass
from pyspark.sql import SparkSession, functions as F

@dataclass
class Rate:
    factor: int = 2

RATE = Rate()

@F.udf("long")
def doubled(amount):
    return amount * RATE.factor

def spread(frames):
    for frame in frames:
        yield frame

spark = SparkSession.builder.getOrCreate()
orders = spark.readStream.schema("customer string, amount long").json("IN")
counted = orders.select("customer", doubled("amount").alias("amount")) \\
    .mapInPandas(spread, "customer string, amount long").groupBy("customer").sum("amount")
counted.writeStream.outputMode("update").format("noop").start(checkpointLocation="CK")
""",
    "a checkpoint of a frame": HEAD
    + """
spark.sparkContext.setCheckpointDir("HERE/rdds")
seeds = spark.createDataFrame([("c1",)], "customer string").checkpoint()
totals = orders.join(seeds, "customer").groupBy("customer").count()
"""
    + START,
    "leaves a thread behind": "import threading\n"
    + HEAD
    + START
    + """
def late():
    threading.Event().wait(2)
    totals.writeStream.outputMode("update").format("noop").start(checkpointLocation="CK")
    open("HERE/late", "w").close()

threading.Thread(target=late, daemon=True).start()
""",
}
BESIDE = """
from pyspark.sql import SparkSession, functions as F

@F.udf("long")
def tripled(amount):
    return amount * 3

def spark_session():
    return SparkSession.builder.getOrCreate()

def build(spark, place):
    orders = spark.readStream.schema("customer string, amount long").json(place)
    return orders.groupBy("customer").agg(F.sum(tripled("amount")).alias("total"))
"""
DATABRICKS = """# Databricks notebook source
# MAGIC %sql
# MAGIC DROP TABLE TABLE

# COMMAND ----------

dbutils.widgets.text("place", "IN")
dbutils.fs.rm("CK", True)
orders = spark.readStream.schema("customer string, amount long").json(dbutils.widgets.get("place"))
display(orders)

# COMMAND ----------

orders.groupBy("customer").count().writeStream.outputMode("update").format("noop") \\
    .option("checkpointLocation", "CK").start()
dbutils.notebook.exit("done")
"""
NOTEBOOK_CELLS = [
    ["%pip install something\n", "!rm -rf CK\n", "from pyspark.sql import functions as F\n"],
    ["%%sql\n", "DROP TABLE TABLE\n"],
    ['orders = spark.readStream.schema("customer string, amount long").json("IN")\n'],
    [
        'orders.groupBy("customer").count().writeStream.outputMode("update").format("noop")'
        '.option("checkpointLocation", "CK").start()\n'
    ],
]
