"""Matches old operators and columns to new ones. Pure."""
