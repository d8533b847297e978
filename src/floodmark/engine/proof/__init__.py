"""What code computes, shown on forks of real checkpoints: replays and comparisons."""
