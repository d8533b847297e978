from pyspark import SparkContext
from pyspark.streaming import StreamingContext

HOST = "db"
sc = SparkContext()


def create():
    ssc = StreamingContext(sc, 5)  # bad
    ssc.checkpoint("hdfs://nn/ck/words-v1")
    ssc.textFileStream("hdfs://nn/in").foreachRDD(lambda rdd: print(HOST, rdd.count()))
    return ssc


StreamingContext.getOrCreate("hdfs://nn/ck/words-v1", create).start()
