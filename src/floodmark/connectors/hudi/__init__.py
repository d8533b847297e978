"""Hudi: what an offset means, and whether a table's timeline still reaches back to it."""
