"""A command loads fewer modules, and calls less deeply, than before the folders were redrawn."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
BEFORE = {
    "inspect": (34, 15),
    "state --key": (58, 17),
    "upgrade --execute": (92, 21),
    "repartition --execute": (132, 26),
}


def test_commands_load_less_than_before() -> None:
    ended = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "command_depth.py")],
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    found = {
        name.strip(): (int(modules), int(depth))
        for name, modules, depth in re.findall(
            r"^(.+?) +(\d+) modules, +(\d+) calls deep \(exit status 0\)$",
            ended.stdout,
            re.MULTILINE,
        )
    }
    assert found.keys() == BEFORE.keys(), ended.stdout
    for name, (modules, depth) in found.items():
        assert modules < BEFORE[name][0], name
        assert depth < BEFORE[name][1], name
