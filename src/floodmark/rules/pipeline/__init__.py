"""Lint's rules (FM2xx), one in each file. The registry finds them by their files."""
