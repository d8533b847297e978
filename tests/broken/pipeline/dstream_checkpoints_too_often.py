from pyspark import SparkContext
from pyspark.streaming import StreamingContext

ssc = StreamingContext(SparkContext(), 10)
ssc.checkpoint("hdfs://nn/ck/words-v1")
words = ssc.textFileStream("hdfs://nn/in")
words.checkpoint(10)  # bad
words.map(str).checkpoint(5)  # bad
words.checkpoint(60)
