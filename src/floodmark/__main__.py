"""Runs a script under supervision with `python -m floodmark script.py …`; else the command.

`floodmark-python` is for spark-submit, which starts the script with the program named in
`spark.pyspark.driver.python`.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path


def main() -> None:
    from floodmark.cli.main import main as command

    first = sys.argv[1] if len(sys.argv) > 1 else ""
    if first.endswith(".py") and Path(first).is_file():
        given = os.environ.get("FLOODMARK_ALLOW", "").split(",")
        allowed = [f"--allow={name.strip()}" for name in given if name.strip()]
        sys.argv[1:] = ["run", "--spark-log", "-", *allowed, first, "--", *sys.argv[2:]]
    command()


def as_python() -> None:
    """Run as Python does, but run a script under supervision."""
    if len(sys.argv) > 1 and sys.argv[1].endswith(".py"):
        main()
    else:
        os.execv(sys.executable, [sys.executable, *sys.argv[1:]])  # nosec B606


if __name__ == "__main__":
    main()
