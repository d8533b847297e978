"""Finds checkpoints below a root, and lists what is larger than one listing."""
