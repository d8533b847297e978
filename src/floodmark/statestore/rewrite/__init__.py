"""Rewrites state: for other partitions, another provider or other code."""
