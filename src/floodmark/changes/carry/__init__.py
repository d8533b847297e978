"""Builds the content of a new checkpoint: positions, source files, state, paths."""
