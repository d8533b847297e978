"""What Spark keeps of a DStreams application, read as data: no JVM, and nothing of it is run."""
