"""Reads, compares and tries out the code of a query: its plan and its functions."""
