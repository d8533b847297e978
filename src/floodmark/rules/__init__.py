"""Rules: each finds one problem in a checkpoint or in code, and explains it."""
