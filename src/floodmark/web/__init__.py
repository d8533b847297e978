"""Serves the pages and the JSON of `floodmark serve`, read-only."""
