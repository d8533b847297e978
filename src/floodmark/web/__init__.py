"""The pages and the JSON of `floodmark serve`: read-only, for every checkpoint below its roots."""
