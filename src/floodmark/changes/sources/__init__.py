"""Asks the real sources what they still have, before a change relies on it."""
