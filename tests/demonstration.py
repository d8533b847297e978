"""`floodmark demo`, run once for every test that looks at what it did and left."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

MAIN = "from floodmark.cli.main import main; main()"


@dataclass(frozen=True)
class Demo:
    """What `floodmark demo --folder data/demo --json` said, and where it left its files."""

    cwd: Path
    status: int
    out: str
    err: str


def run_demo(cwd: Path) -> Demo:
    done = subprocess.run(
        [sys.executable, "-c", MAIN, "demo", "--folder", "data/demo", "--json"],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    return Demo(cwd, done.returncode, done.stdout, done.stderr)
