"""Translates the command line: arguments to api, results to text."""
