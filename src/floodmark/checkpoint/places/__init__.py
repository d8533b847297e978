"""What the name of a place says, without a look at it."""
