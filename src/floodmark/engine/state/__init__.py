"""State on executors: read as a DataFrame, rewritten for other code."""
