"""Runs the demonstration: a sales pipeline that is killed during a batch and loses nothing."""
