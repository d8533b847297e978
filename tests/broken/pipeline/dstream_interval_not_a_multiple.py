from pyspark import SparkContext
from pyspark.streaming import StreamingContext

SECONDS = 4
ssc = StreamingContext(SparkContext(), SECONDS)
ssc.checkpoint("hdfs://nn/ck/words-v1")
words = ssc.textFileStream("hdfs://nn/in")
words.checkpoint(30)  # bad
words.checkpoint(SECONDS * 6)
