from pyspark import SparkContext
from pyspark.streaming import StreamingContext

ssc = StreamingContext(SparkContext(), 5)
pairs = ssc.textFileStream("hdfs://nn/in").map(lambda word: (word, 1))
pairs.updateStateByKey(sum).pprint()  # bad
pairs.reduceByKeyAndWindow(max, min, 30, 10).pprint()  # bad
pairs.reduceByKeyAndWindow(max, None, 30, 10).pprint()
