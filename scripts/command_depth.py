"""Counts what five commands load and how deep they call: `docs/architecture.md` gives the numbers.

A module counts if it is floodmark's and was imported. The depth is the largest number of
floodmark's own functions on the stack at once, without comprehensions.
"""

from __future__ import annotations

import io
import shutil
import subprocess
import sys
import tempfile
from contextlib import redirect_stdout
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
OWN = f"{ROOT}/src/floodmark/"
GOLDEN = ROOT / "tests" / "golden" / "4.2" / "sales-hdfs" / "checkpoint"
COMMANDS = {
    "inspect": "inspect {cp}",
    "state --key": 'state {cp} --key {{"customerId":"c1"}}',
    "upgrade --execute": "upgrade {cp} {new} --execute",
    "repartition --execute": "repartition {cp} {new} --partitions 3 --execute",
}


class Depth:
    """The most frames of floodmark's own functions at once."""

    def __init__(self) -> None:
        self.now = self.most = 0

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if not code.co_filename.startswith(OWN) or code.co_name.startswith("<"):
            return
        if event == "call":
            self.now += 1
            self.most = max(self.most, self.now)
        elif event == "return":
            self.now -= 1


def measure(arguments: list[str]) -> str:
    """In a process of its own: what another command has loaded does not count."""
    from floodmark.cli import main

    depth = Depth()
    with redirect_stdout(io.StringIO()):
        sys.setprofile(depth)
        status = main.run(arguments)
        sys.setprofile(None)
    loaded = sum(name.split(".")[0] == "floodmark" for name in sys.modules)
    return f"{status} {loaded} {depth.most}"


def main() -> None:
    for name, command in COMMANDS.items():
        with tempfile.TemporaryDirectory() as place:
            cp = shutil.copytree(GOLDEN, Path(place, "cp"))
            words = command.format(cp=cp, new=Path(place, "new")).split()
            ended = subprocess.run(
                [sys.executable, __file__, *words], capture_output=True, text=True, check=True
            )
        status, loaded, depth = ended.stdout.split()
        print(f"{name:24} {loaded:>4} modules, {depth:>3} calls deep (exit status {status})")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(measure(sys.argv[1:]))
    else:
        main()
