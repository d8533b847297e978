"""Iceberg: what an offset means, and how far a stream is behind by the table's metadata."""
