"""Delta tables: which versions and files a table still has."""
