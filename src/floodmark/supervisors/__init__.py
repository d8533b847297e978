"""Writes units and manifests that run a pipeline as a service, a module a supervisor. Pure."""
