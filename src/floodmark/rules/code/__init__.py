"""Turns Python code into facts that lint's rules judge: read once, walked once, never run."""
