"""Reads and rewrites state on Spark's executors, and builds the plans of `migrate`."""
