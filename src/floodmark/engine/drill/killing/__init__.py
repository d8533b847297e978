"""Starts drivers, watches how far a batch is, and kills them there; used by tests/chaos too."""
