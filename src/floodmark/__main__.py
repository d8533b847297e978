"""`python -m floodmark script.py …` runs a script under supervision; else it is the command."""

from __future__ import annotations

import sys
from pathlib import Path


def main() -> None:
    from floodmark.cli.main import main as command

    first = sys.argv[1] if len(sys.argv) > 1 else ""
    if first.endswith(".py") and Path(first).is_file():
        sys.argv[1:] = ["run", "--spark-log", "-", first, "--", *sys.argv[2:]]
    command()


if __name__ == "__main__":
    main()
