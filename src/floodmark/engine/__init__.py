"""What runs Spark: the only package that imports pyspark."""
