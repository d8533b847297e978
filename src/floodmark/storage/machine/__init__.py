"""Reads what this machine knows of a checkpoint: processes, open files, Spark UIs."""
