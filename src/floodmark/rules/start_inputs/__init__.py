"""What the rules before a start are given: the query that is about to start, and its checkpoint."""
