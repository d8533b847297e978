"""Applications with `@pipeline` functions: loaded, given their parameters, built."""
