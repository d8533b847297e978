"""Reads Delta tables: the versions and files that a table still has."""
