"""Opens, shows, compares, exports and writes the state of a checkpoint, over storage."""
