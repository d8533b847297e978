"""Loads applications with `@pipeline` functions, sets their parameters and builds them."""
