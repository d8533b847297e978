"""Rules before a start, one a file: FM4xx. The registry finds them by their files."""
