"""Digests of what a plan holds and Spark does not tell: functions, rows, static tables."""
