"""What the rules of compatibility are given: an old checkpoint and new code that meet."""
