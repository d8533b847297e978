"""Runs DStreams, the old streaming API, so that every start is a correct recovery."""
