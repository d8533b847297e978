"""Turns facts about checkpoints and runs into metrics that Prometheus scrapes. No I/O."""
