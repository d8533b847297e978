"""Where checkpoints lie. The only place that opens files, local or remote."""
