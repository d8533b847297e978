"""The doctor's rules, one a file: FM1xx. The registry finds them by their files."""
