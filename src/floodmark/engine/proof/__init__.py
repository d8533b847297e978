"""Shows what code computes, on forks of real checkpoints: replays batches, compares codes."""
