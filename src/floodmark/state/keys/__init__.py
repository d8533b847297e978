"""Finds the partition of a key, and equal keys."""
