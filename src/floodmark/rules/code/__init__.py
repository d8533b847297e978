"""Python code as facts that lint's rules judge: read once, walked once, never run."""
