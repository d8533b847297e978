"""State written anew: for other partitions, another provider or other code."""
