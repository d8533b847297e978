"""The doctor's rules (FM1xx), one in each file. The registry finds them by their files."""
