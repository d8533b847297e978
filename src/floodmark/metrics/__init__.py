"""Facts about checkpoints and runs as metrics that Prometheus scrapes. Text, no I/O."""
