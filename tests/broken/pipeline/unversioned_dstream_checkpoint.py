from pyspark import SparkContext
from pyspark.streaming import StreamingContext

def create():
    ssc = StreamingContext(SparkContext(), 5)
    ssc.checkpoint("hdfs://nn/ck/words")
    return ssc


StreamingContext.getOrCreate("hdfs://nn/ck/words", create).start()  # bad
StreamingContext.getOrCreate("hdfs://nn/ck/words-v2", create).start()
