"""Reads Hudi's offsets, and asks whether a table's timeline still reaches back to one."""
