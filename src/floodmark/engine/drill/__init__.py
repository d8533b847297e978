"""Kills drivers at chosen points of a batch, and looks at what their sinks hold afterwards."""
