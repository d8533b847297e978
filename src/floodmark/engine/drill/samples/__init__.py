"""Replaces the sources of a drilled pipeline by a sample."""
