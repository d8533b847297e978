"""What offsets mean to the source that wrote them: kinds, positions, file lists. Pure."""
