"""Reads the file source's list of seen files and the file sink's list of written files."""
