"""Redirects the writes of a drilled pipeline to its run's own places."""
