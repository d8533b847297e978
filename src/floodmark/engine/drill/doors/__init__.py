"""What keeps the writes of a drilled pipeline in its run's own places."""
