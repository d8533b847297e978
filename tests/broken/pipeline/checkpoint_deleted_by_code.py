from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
orders = spark.readStream.schema("id STRING, time TIMESTAMP").json("s3://lake/orders")

import os
import shutil
import subprocess
import uuid

PLACE = "s3://lake/state/orders"
checkpoint_dir = os.environ["CK"]
orders.writeStream.format("delta").option("checkpointLocation", PLACE).start("s3://lake/a")
shutil.rmtree(checkpoint_dir)  # bad
dbutils.fs.rm(PLACE, True)  # bad
os.system(f"hadoop fs -rm -r {PLACE}")  # bad
subprocess.run(["rm", "-rf", checkpoint_dir], check=True)  # bad
dbutils.fs.rm("dbfs:/mnt/checkpoints/orders", recurse=True)  # bad
shutil.rmtree("s3://lake/state")  # bad
shutil.rmtree("build")


def start_over():
    shutil.rmtree(checkpoint_dir)
    spark.sql("TRUNCATE TABLE orders")


if "--reset" in os.environ:
    shutil.rmtree(checkpoint_dir)
    spark.sql(f"DROP TABLE IF EXISTS {checkpoint_dir}")
# A checkpoint made for this run alone: no restart looks for it.
shutil.rmtree(f"{checkpoint_dir}/{uuid.uuid4().hex}")
os.system(f"hadoop fs -ls {PLACE}")
