"""Kills drivers at chosen points of a batch, and compares what their sinks hold afterwards."""
