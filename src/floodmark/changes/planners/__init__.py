"""One planner for each verb: it takes a checkpoint and options, and returns a plan."""
