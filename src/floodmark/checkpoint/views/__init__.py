"""Shows a checkpoint: its summary, its positions, its differences from another."""
