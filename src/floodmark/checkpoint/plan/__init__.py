"""Reads a query's plan as a tree that can be compared. Pure."""
