"""Manages Spark itself: its Java, its jars, its session, its file systems."""
