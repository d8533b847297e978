"""Drivers, how far a batch is, and how they are killed there; campaigns of tests/chaos use them."""
