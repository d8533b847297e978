"""Rules before a start (FM4xx), one in each file. The registry finds them by their files."""
