"""Computes facts about streams from what was read of them. Pure: opens nothing.

`serve` shows them as pages and JSON.
"""
