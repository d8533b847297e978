"""One file a rule: what changed between a checkpoint and the code that will use it."""
