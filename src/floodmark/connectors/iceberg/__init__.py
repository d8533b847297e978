"""Reads Iceberg's offsets, and a table's metadata to say how far a stream is behind."""
