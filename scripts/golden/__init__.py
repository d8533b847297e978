"""What runs inside a real Spark to make the checkpoints of tests/golden.

`scripts/make_golden.py` copies this package to a neutral folder and runs it there with
the Python of each Spark version, so that no path of a checkout gets into a checkpoint.
"""
