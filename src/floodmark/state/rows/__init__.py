"""Converts rows of state and their types: UnsafeRow and Avro to Arrow, and back."""
