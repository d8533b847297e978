"""What is shown of a checkpoint: its summary, its positions, its differences from another."""
