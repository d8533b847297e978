"""Runs queries until they end: restarts, stops, progress, health."""
