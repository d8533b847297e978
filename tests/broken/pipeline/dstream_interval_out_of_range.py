from pyspark import SparkContext
from pyspark.streaming import StreamingContext

ssc = StreamingContext(SparkContext(), 1)
ssc.checkpoint("hdfs://nn/ck/words-v1")
words = ssc.textFileStream("hdfs://nn/in")
words.checkpoint(60)  # bad
words.checkpoint(2)  # bad
words.checkpoint(10)
