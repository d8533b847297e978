"""State written again: for other partitions, another provider or other code."""
