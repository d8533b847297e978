from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
orders = spark.readStream.schema("id STRING, time TIMESTAMP").json("s3://lake/orders")

import os
import random
import time
import uuid
from datetime import datetime

run = datetime.now().strftime("%Y%m%d")
out = orders.writeStream.format("parquet")
out.option("checkpointLocation", f"s3://lake/ck/{run}").start("s3://lake/a")  # bad
out.option("checkpointLocation", "s3://lake/ck/" + str(uuid.uuid4())).start("s3://lake/b")  # bad
out.option("checkpointLocation", "s3://lake/ck/%s" % time.time()).start("s3://lake/c")  # bad
out.option("checkpointLocation", os.path.join("s3://lake", str(os.getpid()))).start("x")  # bad
out.option("checkpointLocation", "s3://lake/{}".format(random.randint(0, 9))).start("y")  # bad
out.option("checkpointLocation", "s3://lake/ck/" + uuid.uuid4().hex).start("z")  # bad
count = orders.writeStream.format("memory").queryName("count")
count.option("checkpointLocation", f"s3://lake/ck/{uuid.uuid4()}").start()
out.option("checkpointLocation", f"s3://lake/ck/{os.environ['STREAM']}").start("s3://lake/f")
