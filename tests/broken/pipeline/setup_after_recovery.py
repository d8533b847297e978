from pyspark import SparkContext
from pyspark.streaming import StreamingContext

def create():
    ssc = StreamingContext(SparkContext(), 5)
    ssc.checkpoint("hdfs://nn/ck/words-v1")
    return ssc


context = StreamingContext.getOrCreate("hdfs://nn/ck/words-v1", create)
lines = context.textFileStream("hdfs://nn/in")  # bad
context.start()
context.awaitTermination()
