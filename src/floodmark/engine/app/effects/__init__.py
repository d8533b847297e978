"""Leaves out what a script would write: through Spark, with Python itself, on the JVM."""
