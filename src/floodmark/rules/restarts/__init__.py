"""Inputs of the compatibility rules: an old checkpoint, and the new code for it."""
