"""What this machine knows of a checkpoint: its processes, their open files, their Spark UIs."""
