"""Finds the record that makes a batch fail."""
