"""Opens files, local or remote; no other package does."""
