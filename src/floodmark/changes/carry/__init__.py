"""What goes into a new checkpoint: positions, source files, state, paths."""
