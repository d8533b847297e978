import pyspark

def stream(:  # bad
    return pyspark
