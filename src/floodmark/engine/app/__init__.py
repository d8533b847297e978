"""Runs scripts as applications: any PySpark file, so that nothing of it starts or writes."""
