"""Units and manifests that run a pipeline as a service: one module a supervisor, no I/O."""
