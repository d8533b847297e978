"""Runs Spark; no other package imports pyspark."""
