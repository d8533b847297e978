"""Scripts as applications: any PySpark file, run so that nothing of it starts or writes."""
