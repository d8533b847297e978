"""The command line: arguments to api, results to text."""
