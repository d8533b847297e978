"""Tells facts about a place from its name alone, without opening it."""
