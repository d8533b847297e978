"""Inputs of the rules before a start: the query that is about to start, and its checkpoint."""
