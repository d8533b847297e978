"""What the stores of an operator mean, and how their rows take another shape."""
