"""Reads what Spark keeps of a DStreams application as data: no JVM, and no code is run."""
