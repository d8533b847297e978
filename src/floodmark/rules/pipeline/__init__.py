"""Lint's rules, one a file: FM2xx. The registry finds them by their files."""
