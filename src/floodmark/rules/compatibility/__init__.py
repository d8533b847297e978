"""Compatibility rules, one in each file: what changed between a checkpoint and the new code."""
