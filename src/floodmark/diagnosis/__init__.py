"""Gathers the evidence that rules judge: logs, state files, code."""
