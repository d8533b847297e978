"""Starts one query: judges it, takes the lease, starts it and writes a note."""
