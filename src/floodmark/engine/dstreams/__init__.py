"""Runs DStreams: the old streaming API, recovered as it should be."""
