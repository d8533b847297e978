"""A planner a verb: a checkpoint and options in, a plan out."""
