"""Explains the stores of an operator, and converts their rows to another shape."""
