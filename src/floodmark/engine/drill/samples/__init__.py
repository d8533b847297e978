"""The sample that a drilled pipeline reads, and how it stands in for the sources."""
