"""Builds and executes the plans of the changing verbs."""
